"""The words around the code: the README's samples run, and the book's reference pages hold."""

from __future__ import annotations

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
    return {re.sub(r".*<(.+)>$", r"\1", target, flags=re.S).replace("\n", " ") for target in targets}


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


# The README.


def readme_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)
