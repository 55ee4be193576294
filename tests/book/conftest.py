"""One browser and one server for all tests of the built book."""

from __future__ import annotations

import pytest
from book_site import HTML, launch, served
from playwright.sync_api import sync_playwright


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "book" and "browser" in item.fixturenames:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site():
    """Address of the built book on a server of our own."""
    if not (HTML / "index.html").is_file():
        pytest.fail("The book is not built: run `make book` first.")
    with served(HTML) as address:
        yield address


# Not for the whole session: while Playwright is open its event loop counts as running, and the
# tests of live vLLM need one of their own.
@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        if chromium is None:
            pytest.skip("The book was not opened in a browser: no Chromium on PATH, none installed")
        yield chromium
        chromium.close()
