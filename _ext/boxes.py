"""Give the recurring parts of a chapter their look, by their titles.

Every chapter has a bet, a part on where it breaks, and a list of what to keep. Whether a page makes
one of them a section or a box, it gets the same class, and `assets/book.css` does the rest.
"""

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


def setup(app):
    app.connect("doctree-read", mark_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
