"""What the pages' look needs and Markdown cannot say.

Every chapter has a bet, a part on where it breaks, and a list of what to keep. Whether a page makes
one of them a section or a box, it gets the same class, and `assets/book.css` does the rest.

A formula in a sentence is a block to the browser, which would break the line between it and the
comma after it. The two are put in one box that does not break.
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


def setup(app):
    app.connect("doctree-read", mark_parts)
    app.connect("doctree-read", hold_punctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
