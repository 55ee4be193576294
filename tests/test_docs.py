"""The words around the code: the README's samples run, and the book's reference pages hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
PAGES = sorted(BOOK.glob("*.md"))


def glossary_entries() -> list[tuple[str, str]]:
    """Term and definition of each glossary entry."""
    text = (BOOK / "glossary.md").read_text(encoding="utf-8")
    body = re.search(r"```\{glossary\}\n(.*?)\n```", text, re.S).group(1)
    entries = []
    for block in re.split(r"\n\s*\n", body):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        if lines:
            entries.append((lines[0], " ".join(line.strip() for line in lines[1:])))
    return entries


def terms_used(text: str) -> set[str]:
    """What a text's {term} roles point at."""
    targets = re.findall(r"\{term\}`([^`]+)`", text)
    return {
        re.sub(r".*<(.+)>$", r"\1", target, flags=re.S).replace("\n", " ") for target in targets
    }


def test_glossary_is_sorted_and_each_term_is_defined_once():
    terms = [term for term, _ in glossary_entries()]
    assert terms == sorted(terms, key=str.lower)
    assert len(terms) == len({term.lower() for term in terms})


def test_glossary_definitions_are_short():
    for term, definition in glossary_entries():
        assert definition, term
        assert len(re.findall(r"[.?!](?:\s|$)", definition)) <= 5, term


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_linked_terms_are_in_the_glossary(page):
    known = {term.lower() for term, _ in glossary_entries()}
    used = terms_used(page.read_text(encoding="utf-8"))
    assert not {term for term in used if term.lower() not in known}


def test_every_page_is_in_the_table_of_contents_and_back():
    listed = re.findall(r"(?:file|root): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert len(listed) == len(set(listed))
    for name in listed:
        assert any((ROOT / f"{name}{ending}").is_file() for ending in (".md", ".ipynb")), name
    pages = {f"book/{page.stem}" for page in PAGES}
    labs = {f"notebooks/{lab.stem}" for lab in (ROOT / "notebooks").glob("*.ipynb")}
    assert pages | labs == set(listed)


def test_every_source_stands_under_a_heading_of_the_bibliography():
    text = (BOOK / "references.bib").read_text(encoding="utf-8")
    headings = set(re.findall(r'keywords % "([^"]+)"', (BOOK / "bibliography.md").read_text()))
    for entry in re.split(r"\n(?=@)", text)[1:]:
        key = re.match(r"@\w+\{([^,]+),", entry).group(1)
        keyword = re.search(r"keywords = \{([^}]+)\}", entry)
        assert keyword, key
        assert keyword.group(1) in headings, key


def test_no_page_cites_a_source_that_is_not_listed():
    keys = set(re.findall(r"^@\w+\{([^,]+),", (BOOK / "references.bib").read_text(), re.M))
    for page in PAGES:
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text(encoding="utf-8")):
            assert not {key.strip() for key in group.split(",")} - keys, page.stem


def test_every_module_of_rules_and_of_theory_has_its_place_in_the_reference():
    described = "\n".join(page.read_text(encoding="utf-8") for page in BOOK.glob("api-*.md"))
    for room in ("policies", "theory"):
        for path in (ROOT / "src" / "whonext" / room).glob("[a-z]*.py"):
            assert f"automodule:: whonext.{room}.{path.stem}\n" in described, path.name


def rooms() -> list[set[str]]:
    """The rooms of the package as the contributing page lists them, row by row."""
    text = (BOOK / "contributing.md").read_text(encoding="utf-8")
    table = re.search(r"\| Room \| Holds \|\n.*?\n\n", text, re.S).group(0)
    first = [line.split("|")[1] for line in table.strip().splitlines()[2:]]
    return [{name.removesuffix(".py") for name in re.findall(r"`([a-z]+)", c)} for c in first]


def imported(path: Path) -> set[str]:
    """Rooms that a file imports from, however late."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
        elif isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in modules if name.startswith("whonext.")}


def test_rooms_import_only_from_the_rooms_above_them():
    place = {room: row for row, names in enumerate(rooms()) for room in names}
    package = ROOT / "src" / "whonext"
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room.startswith("__"):
            continue
        assert room in place, f"{room} is not in the table of rooms"
        for other in imported(path) - {room}:
            late_plot = (room, other) == ("results", "charts")
            assert late_plot or place[other] <= place[room], f"{path.name} imports {other}"


# ------------------------------------------------------------------------------------------------
# The README
# ------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README, re.S)
    for line in block.splitlines()
]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reader's folder, with the README's own policy in it."""
    place = tmp_path_factory.mktemp("reader")
    (place / "patient.py").write_text(PYTHON_BLOCKS[0], encoding="utf-8")
    return place


def test_the_readme_policy_is_ten_lines_and_is_the_one_in_the_book():
    lines = [line for line in PYTHON_BLOCKS[0].splitlines() if line.strip()]
    assert lines[0] == "# patient.py"
    assert len(lines[1:]) <= 10
    page = (BOOK / "your-own-policy.md").read_text(encoding="utf-8")
    assert "%%writefile patient.py\n" + PYTHON_BLOCKS[0].partition("\n")[2] in page


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("whonext ")])
def test_the_commands_of_the_readme_run(command, folder):
    words = command.split()
    if words[1] == "simulate":
        words += ["--jobs", "20000"]
    done = run(["-m", *words], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("command", [c for c in COMMANDS if "whonext.serving.server" in c])
def test_the_server_of_the_readme_takes_its_arguments(command, folder):
    done = run(command.split()[1:], folder)  # there is no model in the folder
    assert done.returncode == 2
    assert done.stderr.startswith("model='.cache/SmolLM2-135M-Instruct'"), done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_python_of_the_readme_runs(folder):
    done = run(["-c", PYTHON_BLOCKS[1].replace("1e6", "1e5")], folder)
    assert done.returncode == 0, done.stderr
    assert "sjf" in done.stdout


def test_the_make_targets_of_the_readme_and_the_book_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set()
    for text in [README, *(page.read_text(encoding="utf-8") for page in PAGES)]:
        named.update(re.findall(r"`make ([a-z]+)", text))
        for block in re.findall(r"```(?:bash|text)\n(.*?)```", text, re.S):
            named.update(re.findall(r"^make ([a-z]+)", block, re.M))
    assert named
    assert named <= targets


def test_the_pictures_of_the_readme_are_there_and_small():
    for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file()
        assert (ROOT / path).stat().st_size < 300_000
