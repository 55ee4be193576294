"""The shape of the labs; what they print is compared by `pytest --nbval notebooks`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from whonext import exercises

ROOT = Path(__file__).resolve().parents[2]
LABS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=LABS, ids=lambda path: path.stem)
def lab(request):
    return nbformat.read(request.param, as_version=4)


def code_of(lab):
    return [cell for cell in lab.cells if cell.cell_type == "code"]


def source_of(lab):
    return "\n".join(cell.source for cell in lab.cells)


def markup_of(lab):
    return "\n".join(
        output.get("data", {}).get("text/html", "")
        for cell in code_of(lab)
        for output in cell.outputs
    )


def test_there_are_labs():
    assert LABS


def test_is_valid_and_carries_no_trace_of_who_ran_it(lab):
    nbformat.validate(lab)
    assert set(lab.metadata) == {"kernelspec", "language_info"}
    assert lab.metadata.kernelspec.name == "python3"
    assert dict(lab.metadata.language_info) == {"name": "python"}
    for cell in lab.cells:
        assert set(cell.metadata) <= {"tags", "jupyter"}
    assert str(Path.home()) not in nbformat.writes(lab)


def test_was_run_from_top_to_bottom_without_an_error(lab):
    counts = [cell.execution_count for cell in code_of(lab)]
    assert counts == list(range(1, len(counts) + 1))
    for cell in code_of(lab):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


def test_opens_with_a_folded_install_cell(lab):
    install = code_of(lab)[0]
    assert "pip install" in install.source
    assert install.metadata.jupyter.source_hidden
    assert not install.outputs


def test_has_every_part_of_a_lab(lab):
    headings = re.findall(r"^## (.*)", source_of(lab), re.MULTILINE)
    assert [h for h in headings if h.startswith("Experiment ")] == [
        h for h in headings if re.match(r"Experiment [123]: ", h)
    ]
    assert len([h for h in headings if h.startswith("Experiment ")]) == 3
    for part in ("Place your bet", "The question", "Theory against simulation", "Exercises"):
        assert part in headings
    text = source_of(lab)
    assert text.count("widgets.explore(") == 1
    assert text.count("widgets.bet(") == 1
    assert text.count("# change this") + text.count(": change this") >= 3
    assert text.count("widgets.check(") >= 3


def test_links_to_its_page(lab):
    page = re.search(r"\]\(\.\./(book/[a-z-]+\.md)\)", lab.cells[0].source)
    assert page
    assert (ROOT / page[1]).exists()


def test_asks_only_exercises_that_exist_and_shows_how_to_solve_them(lab):
    asked = re.findall(r'widgets\.check\("([a-z-]+)", answer\)', source_of(lab))
    assert set(asked) <= set(exercises.EXERCISES)
    last = code_of(lab)[-1]
    assert last.metadata.jupyter.outputs_hidden
    for name in asked:
        assert f"# {name}\n" in last.outputs[0].text


def test_every_exercise_is_asked_in_one_lab():
    text = "\n".join(path.read_text(encoding="utf-8") for path in LABS)
    for name in exercises.EXERCISES:
        assert text.count(f'widgets.check(\\"{name}\\"') == 1


def test_shows_pictures_and_tables_without_a_kernel_or_a_network(lab):
    markup = markup_of(lab)
    assert markup.count('<img class="whonext-still"') >= 3
    assert markup.count("<table") >= 2
    assert "<script" not in markup
    assert "http" not in re.sub(r'src="data:[^"]*"', "", markup)
    assert "widget-view" not in nbformat.writes(lab)
    assert "make lab" in markup


def test_every_picture_says_what_it_shows(lab):
    for label in re.findall(r'<img class="whonext-still" alt="([^"]*)"', markup_of(lab)):
        assert len(label) > 60


def test_prints_at_most_five_digits(lab):
    texts = [
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in code_of(lab)[:-1]
        for output in cell.outputs
    ]
    for number in re.findall(r"(?<![\w.=/])\d[\d,]*\.?\d*(?:e[+-]?\d+)?", "\n".join(texts)):
        digits = re.sub(r"e.*", "", number).replace(",", "").replace(".", "").strip("0")
        assert len(digits) <= 5, number


@pytest.mark.slow
def test_nbval_compares_from_any_working_folder(tmp_path):
    """A right lab passes, and one with a wrong digit in a table does not."""
    good = LABS[1]
    text = good.read_text(encoding="utf-8")
    digits = re.search(r"fcfs: mean response time \(s\)  5\.000 +(\d\.\d{3})", text)
    assert digits
    bad = tmp_path / "bad.ipynb"
    bad.write_text(text.replace(digits[1], "9.999"), encoding="utf-8")
    settings = ["--nbval-sanitize-with", str(ROOT / "tests" / "notebooks" / "sanitize.cfg")]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
    for path, code in ((good, 0), (bad, 1)):
        done = subprocess.run(
            [*run, *settings, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout[-2000:]
