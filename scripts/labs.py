"""Run the labs and store their outputs.

    python scripts/labs.py [notebooks/01-queues.ipynb ...]

Run it after a change to a lab, or to what a lab prints, and read the difference before committing.
Each notebook runs from an empty folder, as it must run from any. What is stored is text, tables and
still pictures. The controls themselves live only in a running notebook, and are left out, so that
a reader without one sees the first state instead of a control that does nothing. Pictures are
stored as ``<img>``: a program that shows a notebook which it does not trust takes an ``<svg>``
apart and leaves its letters behind. The book's build turns them back, so that they follow its
light and dark pages.
"""

import base64
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
LIVE_ONLY = "application/vnd.jupyter.widget-view+json"
PICTURE = re.compile(r'<svg role="img" aria-label="([^"]*)".*?</svg>', re.DOTALL)
KEPT_METADATA = ("tags", "jupyter")


def run(path: Path) -> None:
    """Execute one notebook and write it back with its outputs and the least metadata."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        settings = {"timeout": 600, "kernel_name": "python3", "resources": {"metadata": {}}}
        settings["resources"]["metadata"]["path"] = empty
        NotebookClient(notebook, store_widget_state=False, **settings).execute()
    clean(notebook)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def clean(notebook: nbformat.NotebookNode) -> None:
    """Drop what differs from run to run and what only a running notebook can use."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for place, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{place:02d}"
        cell.metadata = nbformat.from_dict(
            {name: cell.metadata[name] for name in KEPT_METADATA if name in cell.metadata}
        )
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            data.pop(LIVE_ONLY, None)
            if "text/html" in data:
                data["text/html"] = PICTURE.sub(stored, data["text/html"])
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})


def stored(picture: re.Match) -> str:
    """Write an ``<svg>`` as an ``<img>`` that holds it."""
    code = base64.b64encode(picture[0].encode()).decode()
    return (
        f'<img class="whonext-still" alt="{picture[1]}" '
        'style="width:100%;max-width:42rem;background-color:white;padding:8px" '
        f'src="data:image/svg+xml;base64,{code}">'
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(NOTEBOOKS.glob("*.ipynb")):
        print(f"running {name}")
        run(Path(name))
