"""What the pages' look needs and Markdown cannot say.

Every chapter has a bet, a part on where it breaks, and a list of what to keep. Whether a page makes
one of them a section or a box, it gets the same class, and `assets/book.css` does the rest.

A formula in a sentence is a block to the browser, which would break the line between it and the
comma after it. The two are put in one box that does not break. Nor does a line break between a
number and its unit.
"""

import re

from docutils import nodes

CLASSES = {
    "place your bet": "bet",
    "where it breaks": "breaks",
    "what to keep": "keep",
}


def mark_parts(app, doctree):
    """Add the class to each section or admonition whose title starts with one of the names."""
    for title in doctree.findall(nodes.title):
        text = title.astext().strip().lower()
        for start, name in CLASSES.items():
            if text.startswith(start) and name not in title.parent["classes"]:
                title.parent["classes"].append(name)


def hold_punctuation(app, doctree):
    """Keep each formula in a sentence together with the signs around it."""
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        if not isinstance(parent, nodes.TextElement):
            continue
        place = parent.index(formula)
        before = parent[place - 1] if place else None
        after = parent[place + 1] if place + 1 < len(parent) else None
        opening = re.search(r"[(\[“‘]+$", str(before)) if isinstance(before, nodes.Text) else None
        closing = (
            re.match(r"[,.;:!?)\]”’]+|-\w+", str(after)) if isinstance(after, nodes.Text) else None
        )
        if not (opening or closing):
            continue
        box = nodes.inline(classes=["unbroken"])
        if closing:
            parent.replace(after, nodes.Text(str(after)[closing.end() :]))
        parent.replace(formula, box)
        if opening:
            parent.replace(before, nodes.Text(str(before)[: opening.start()]))
            box += nodes.Text(opening.group())
        box += formula
        if closing:
            box += nodes.Text(closing.group())


UNIT = r"(%|s|ms|GiB|GB|MB)(?![\w-])"
VERBATIM = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def hold_units(app, doctree):
    """Keep a number and its unit on one line."""
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        if not isinstance(parent, nodes.TextElement) or isinstance(parent, VERBATIM):
            continue
        held = re.sub(rf"(?<=\d) {UNIT}", "\u00a0\\1", str(text))
        if parent.index(text) > 0:  # after a number that the page's code has set
            held = re.sub(rf"^ {UNIT}", "\u00a0\\1", held)
        if held != str(text):
            parent.replace(text, nodes.Text(held))


def setup(app):
    app.connect("doctree-read", mark_parts)
    app.connect("doctree-read", hold_punctuation)
    app.connect("doctree-read", hold_units)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
