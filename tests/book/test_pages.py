"""Every page of the built book in a real browser with the network off.

A page is opened once and all its tests look at it in turn. Every request that does not go to the
book itself is refused and noted, so a page that leans on another site fails here.
"""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from book_site import HTML, contents
from playwright.sync_api import Error as PlaywrightError

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

# Resolves when fonts, formulas and charts are there, or with False after ten seconds.
READY = """async () => {
  const charts = document.querySelectorAll('[id^="altair-viz-"]');
  const drawn = async () => {
    await document.fonts.ready;
    if (window.MathJax && window.MathJax.startup) { await window.MathJax.startup.promise; }
    while (![...charts].every((chart) => chart.querySelector('svg.marks'))) {
      await new Promise((next) => setTimeout(next, 50));
    }
    return true;
  };
  return Promise.race([drawn(), new Promise((next) => setTimeout(next, 10000, false))]);
}"""

# Resolves when no colour is on its way from one theme to the other.
STILL = """() => Promise.race([
  Promise.all(document.getAnimations().map((move) => move.finished.catch(() => null))),
  new Promise((next) => setTimeout(next, 1000)),
])"""

# Moves the control and says whether its chart drew anything anew within two seconds.
MOVE = """async (control) => {
  const chart = control.closest('.vega-embed');
  const marks = () => chart.querySelector('svg.marks').innerHTML;
  const before = marks();
  if (control.type === 'range') {
    control.value = control.value === control.max ? control.min : control.max;
  } else if (control.tagName === 'SELECT') {
    control.selectedIndex = (control.selectedIndex + 1) % control.options.length;
  } else {
    control.checked = !control.checked;
  }
  for (const name of ['input', 'change']) {
    control.dispatchEvent(new Event(name, {bubbles: true}));
  }
  const end = performance.now() + 2000;
  while (performance.now() < end) {
    if (marks() !== before) { return true; }
    await new Promise((next) => setTimeout(next, 30));
  }
  return false;
}"""

# Elements that stick out of the page to the right, none of them inside a box that scrolls.
WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (node) => {
    for (let at = node.parentElement; at; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== 'visible') { return true; }
    }
    return false;
  };
  const wide = [...document.querySelectorAll('main *')].filter(
    (node) => node.getBoundingClientRect().right > width + 1 && !scrolls(node));
  return {
    page: document.documentElement.scrollWidth,
    wide: wide.slice(0, 5).map((node) => node.tagName + '.' + node.className),
  };
}"""

COLOURS = """() => {
  const style = getComputedStyle(document.body);
  const texts = [...document.querySelectorAll('svg.marks text')].filter((text) => text.textContent);
  return {
    page: style.backgroundColor,
    text: style.color,
    charts: texts.map((text) => getComputedStyle(text).fill),
  };
}"""


class Visit:
    """A page in a browser that reaches nothing but the book.

    Attributes
    ----------
    tab
        The browser's page.
    outside
        Addresses of other sites that the page asked for.
    missing
        Addresses of the book that did not answer, with the status.
    errors
        What the page raised or wrote to the console as an error.
    """

    def __init__(self, browser, home, address, **options):
        self.home = home
        self.outside, self.missing, self.errors = [], [], []
        self.context = browser.new_context(**options)
        self.context.route("**/*", self._only_home)
        self.tab = self.context.new_page()
        self.tab.on("response", self._note_response)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._note_console)
        self.tab.goto(address)
        self.ready = self.tab.evaluate(READY)

    def _only_home(self, route):
        url = route.request.url
        if url.startswith((self.home, "data:", "blob:")):
            route.continue_()
        else:
            self.outside.append(url)
            route.abort()

    def _note_response(self, response):
        if response.status >= 400:
            self.missing.append((response.status, response.url))

    def _note_console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def theme(self, wanted):
        """Press the theme button until the page is in the theme wanted."""
        button = self.tab.locator(".bd-header-article .theme-switch-button")
        for _ in range(4):
            if self.tab.evaluate("document.documentElement.dataset.theme") == wanted:
                break
            button.click()
        assert self.tab.evaluate("document.documentElement.dataset.theme") == wanted
        self.tab.evaluate(READY)
        self.tab.evaluate(STILL)

    def close(self):
        self.context.close()


def source(page):
    """The page as built."""
    return (HTML / f"{page}.html").read_text(encoding="utf-8")


def chart_count(page):
    """How many charts a page must draw."""
    return len(re.findall(r'<div id="altair-viz-', source(page)))


@pytest.fixture(scope="module", params=[*contents(), "search", "genindex"])
def visit(request, browser, site):
    """The page, opened once for all its tests; what axe does to the console comes last."""
    opened = Visit(
        browser, site, f"{site}{request.param}.html", viewport=DESK, color_scheme="light"
    )
    opened.page = request.param
    yield opened
    opened.close()


def test_charts_draw(visit):
    assert visit.ready
    assert visit.tab.locator(".vega-embed svg.marks").count() == chart_count(visit.page)


def test_formulas_are_typeset(visit):
    formulas = visit.tab.locator("article .math").count()
    assert visit.tab.locator("article .math mjx-container").count() >= formulas
    assert visit.tab.locator("mjx-merror").count() == 0


def test_widgets_come_to_life(visit):
    views = source(visit.page).count("application/vnd.jupyter.widget-view+json")
    if views:
        visit.tab.wait_for_selector(".jupyter-widgets", timeout=5000)
    assert visit.tab.locator(".widget-subarea").count() >= views


def test_controls_move_their_chart(visit):
    controls = visit.tab.locator(".vega-bindings").locator("input, select")
    for control in controls.all():
        label = control.evaluate("(control) => control.closest('.vega-bind').innerText")
        assert control.evaluate(MOVE), f"nothing moved with: {label}"


def test_dark_mode_recolours_page_and_charts(visit):
    visit.theme("light")
    light = visit.tab.evaluate(COLOURS)
    controls = visit.tab.locator(".vega-bindings input[type=range]")
    set_to = [control.input_value() for control in controls.all()]
    visit.theme("dark")
    visit.tab.wait_for_timeout(100)
    dark = visit.tab.evaluate(COLOURS)
    assert visit.tab.locator(".vega-embed svg.marks").count() == chart_count(visit.page)
    assert [control.input_value() for control in controls.all()] == set_to
    visit.theme("light")
    assert dark["page"] != light["page"]
    assert dark["text"] != light["text"]
    if light["charts"]:
        assert set(dark["charts"]) != set(light["charts"])


def test_page_fits_a_phone(visit, browser, site):
    phone = Visit(
        browser, site, f"{site}{visit.page}.html", viewport=PHONE, has_touch=True, is_mobile=True
    )
    try:
        layout = phone.tab.evaluate(WIDE)
        drawn = phone.tab.locator(".vega-embed svg.marks").count()
    finally:
        phone.close()
    assert layout["page"] <= PHONE["width"], layout["wide"]
    assert drawn == chart_count(visit.page)


def test_page_needs_nothing_from_outside(visit):
    assert visit.outside == []
    assert visit.missing == []


def test_page_raises_no_errors(visit):
    assert visit.errors == []


# In the dark only the colours are other ones.
AXE = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}


@pytest.mark.parametrize("theme", AXE)
def test_page_is_accessible(visit, theme):
    visit.theme(theme)
    found = Axe().run(visit.tab, options=AXE[theme]).response["violations"]
    visit.theme("light")
    grave = [
        f"{problem['id']}: {problem['help']}: {node['target']} {node.get('failureSummary', '')}"
        for problem in found
        if problem["impact"] in ("serious", "critical")
        for node in problem["nodes"][:3]
    ]
    assert not grave, "\n".join(grave)


@pytest.mark.parametrize("page", contents())
def test_no_cell_shows_a_failure(page, site):
    """What a shell command says when it fails does not stop the build."""
    outputs = re.findall(r'<div class="output .*?</div>', source(page), re.S)
    for sign in ("command not found", "No such file", "Traceback (most recent"):
        assert not [output for output in outputs if sign in output], sign


def sample():
    """The first page, and the first with a chart and with widgets."""
    chosen = [contents()[0]]
    for mark in ("altair-viz-", "application/vnd.jupyter.widget-view+json"):
        chosen += [page for page in contents() if mark in source(page)][:1]
    return list(dict.fromkeys(chosen))


def test_pages_work_from_a_folder(browser, site):
    """The same from file://, for a reader who double-clicks."""
    home = HTML.as_uri()
    for page in sample():
        opened = Visit(browser, home, f"{home}/{page}.html", viewport=DESK)
        try:
            drawn = opened.tab.locator(".vega-embed svg.marks").count()
            assert (page, opened.outside, opened.errors) == (page, [], [])
            assert drawn == chart_count(page)
        finally:
            opened.close()


def test_search_finds_pages(browser, site):
    opened = Visit(browser, site, f"{site}search.html?q=queue", viewport=DESK)
    try:
        opened.tab.wait_for_selector("#search-results li", timeout=5000)
        assert (opened.outside, opened.errors) == ([], [])
    finally:
        opened.close()


def test_a_glossary_term_shows_its_card(browser, site):
    page = next(page for page in contents() if "xref std std-term" in source(page))
    opened = Visit(browser, site, f"{site}{page}.html", viewport=DESK)
    try:
        opened.tab.locator("article a:has(> .std-term)").first.focus()
        opened.tab.wait_for_selector(".tippy-box", timeout=3000)
        card = opened.tab.locator(".tippy-box").inner_text()
        assert len(card) > 20
        assert (opened.outside, opened.errors) == ([], [])
    except PlaywrightError as error:
        pytest.fail(f"no card on {page}: {error}")
    finally:
        opened.close()
