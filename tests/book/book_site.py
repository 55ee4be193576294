"""The built book as a browser sees it: its pages, a local server, and Chromium."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from playwright.sync_api import Browser, Playwright
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(os.environ.get("WHONEXT_BOOK", Path(__file__).resolve().parents[2]))
HTML = ROOT / "_build" / "html"

#: Names under which a Chromium may stand on PATH.
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

#: Chromium asks its makers for updates at every start unless it is told not to.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def contents() -> list[str]:
    """Names of all pages in the table of contents, in reading order, without their endings."""
    pages: list[str] = []

    def visit(entry: object) -> None:
        if isinstance(entry, list):
            for part in entry:
                visit(part)
        elif isinstance(entry, dict):
            pages.extend(str(entry[key]) for key in ("root", "file") if key in entry)
            for part in entry.values():
                visit(part)

    visit(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    return pages


def launch(playwright: Playwright) -> Browser | None:
    """Start the Chromium on PATH, else Playwright's own; None where there is neither."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        return playwright.chromium.launch(executable_path=path, args=list(FLAGS))
    except PlaywrightError:
        return None


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and keeps quiet about it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    """A server that a browser may hang up on."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yields the address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with QuietServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
