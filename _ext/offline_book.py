"""Keep every address of a page local, and its scripts to those that the page has a use for.

The theme loads Thebe, a chart library and MathJax on every page, some of it twice and some of it
from other sites. The pages of this book work with the network off.
"""

CHART_MARK = "altair-viz-"
CHART_FILES = ("vega-bundle.js", "charts.js")


def is_thebe(script):
    body = script.attributes.get("body") or ""
    return "sphinx-thebe" in str(script.filename) or "THEBE_JS_URL" in body


def is_chart(script):
    return str(script.filename).split("?")[0].endswith(CHART_FILES)


def is_mathjax(script):
    body = getattr(script, "attributes", {}).get("body") or ""
    return "mathjax/" in str(script.filename) or body.startswith("window.MathJax")


def trim_scripts(app, pagename, templatename, context, doctree):
    """Drop Thebe, repeated inline scripts, and libraries that the page does not use."""
    html = context.get("body") or ""
    has_chart = CHART_MARK in html
    has_maths = 'class="math' in html
    kept, bodies = [], set()
    for script in context["script_files"]:
        body = getattr(script, "attributes", {}).get("body")
        if is_thebe(script) or (is_chart(script) and not has_chart):
            continue
        if is_mathjax(script) and not has_maths:
            continue
        if body is not None:
            if body in bodies:
                continue
            bodies.add(body)
        kept.append(script)
    context["script_files"] = kept
    context["css_files"] = [
        sheet for sheet in context["css_files"] if "sphinx-thebe" not in str(sheet.filename)
    ]


def setup(app):
    # After the theme (500) and Jupyter Book (up to 900) have added theirs.
    app.connect("html-page-context", trim_scripts, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
