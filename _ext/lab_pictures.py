"""Put the pictures of the labs into the page, so that their words take the page's colour.

A lab is stored with each picture as an ``<img>`` (see ``scripts/labs.py``), which cannot know
whether the page around it is light or dark. An ``<svg>`` in the page can.
"""

import base64
import re

STORED = re.compile(
    r'<img class="whonext-still"[^>]* src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]*)"[^>]*>'
)
MARK = "whonext-still"


def drawn(picture):
    svg = base64.b64decode(picture[1]).decode()
    return f'<div class="{MARK}">{svg}</div>'


def draw_pictures(app, pagename, templatename, context, doctree):
    if MARK in (context.get("body") or ""):
        context["body"] = STORED.sub(drawn, context["body"])


def setup(app):
    app.connect("html-page-context", draw_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
