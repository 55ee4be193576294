"""Key the cache of executed pages on everything that their outputs are made from.

Jupyter's cache compares a page's own code and nothing else, so a change in ``src/`` would leave
yesterday's figures in the book. Here the cache lies in a folder named after a hash of the package,
of the committed records and of the pinned versions: a change in any of them starts a new one.
"""

import hashlib
import shutil
from pathlib import Path

CACHES = Path("_build") / "execution"


def fingerprint(root):
    """Hash of the names and contents of all that an executed page may read."""
    digest = hashlib.sha256()
    files = [
        *sorted((root / "src").rglob("*.py")),
        *sorted((root / "results").rglob("*.json")),
        root / "requirements-book.txt",
    ]
    for path in files:
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def choose_cache(app, config):
    """Point myst-nb to the folder for the code as it is now, and drop the older ones."""
    root = Path(app.srcdir)
    chosen = root / CACHES / fingerprint(root)
    if chosen.parent.is_dir():
        for old in chosen.parent.iterdir():
            if old != chosen:
                shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(chosen)


def setup(app):
    app.connect("config-inited", choose_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
