"""Save pictures of every page of the built book: light, dark, and on a phone.

Run by ``make screenshots``; names of pages as arguments restrict it to those.
"""

from __future__ import annotations

import sys

from book_site import HTML, ROOT, contents, launch, served
from playwright.sync_api import sync_playwright

FOLDER = ROOT / "_build" / "screenshots"

#: Name of a picture -> the theme, and the width and height of the window.
KINDS = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 390, 844)}


def main(pages: list[str]) -> int:
    with sync_playwright() as playwright, served(HTML) as address:
        browser = launch(playwright)
        if browser is None:
            print("No Chromium on PATH and none of Playwright's own: no screenshots.")
            return 1
        FOLDER.mkdir(parents=True, exist_ok=True)
        for kind, (theme, width, height) in KINDS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme
            )
            tab = context.new_page()
            for page in pages or contents():
                tab.goto(f"{address}{page}.html")
                tab.wait_for_load_state("networkidle")
                tab.wait_for_timeout(300)
                target = FOLDER / f"{page.replace('/', '-')}-{kind}.png"
                tab.screenshot(path=target, full_page=True)
                print(target.relative_to(ROOT))
            context.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
