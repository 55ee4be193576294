"""Copy the browser libraries of the book from installed packages into assets/vendor/.

Run with the interpreter of the environment that builds the book, after ``npm ci``. Each library
keeps its licence file beside it.
"""

import re
import shutil
from importlib import metadata
from pathlib import Path

import vl_convert
from altair.vegalite.v6.display import VEGALITE_VERSION

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "assets" / "vendor"

#: What to copy from node_modules -> where it goes under assets/vendor.
FILES = {
    "mathjax/es5/tex-chtml.js": "mathjax/tex-chtml.js",
    "mathjax/es5/output/chtml/fonts": "mathjax/output/chtml/fonts",
    "mathjax/es5/input/tex": "mathjax/input/tex",
    "mathjax/es5/a11y": "mathjax/a11y",
    "mathjax/es5/sre": "mathjax/sre",
    "mathjax/es5/ui": "mathjax/ui",
    "mathjax/LICENSE": "mathjax/LICENSE",
    "requirejs/require.js": "widgets/require.js",
    "@jupyter-widgets/html-manager/dist/embed-amd.js": "widgets/embed-amd.js",
    "@jupyter-widgets/html-manager/dist/embed.js.LICENSE.txt": "widgets/embed-amd.LICENSE.txt",
    "@popperjs/core/dist/umd/popper.min.js": "popper.min.js",
    "@popperjs/core/LICENSE.md": "popper.LICENSE.md",
    "tippy.js/dist/tippy-bundle.umd.min.js": "tippy-bundle.umd.min.js",
    "tippy.js/LICENSE": "tippy.LICENSE",
}

#: Fonts (SIL Open Font License), the alphabets of each that the book uses, and the styles.
FONTS = ("source-serif-4", "source-sans-3", "source-code-pro")
ALPHABETS = ("latin", "latin-ext", "greek")
STYLES = ("wght.css", "wght-italic.css")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def copy_fonts(target: Path) -> None:
    """Copy the font files and write one style sheet that declares them."""
    rules = []
    for font in FONTS:
        package = MODULES / "@fontsource-variable" / font
        copy(package / "LICENSE", target / f"{font}.LICENSE")
        for style in STYLES:
            for rule in re.split(r"\n(?=/\*)", (package / style).read_text(encoding="utf-8")):
                name = re.search(r"url\(\./files/([\w-]+\.woff2)\)", rule).group(1)
                if re.match(rf"{font}-({'|'.join(ALPHABETS)})-wght", name):
                    copy(package / "files" / name, target / name)
                    rules.append(rule.replace("./files/", "./").strip())
    (target / "fonts.css").write_text("\n\n".join(rules) + "\n", encoding="utf-8")


def main() -> None:
    shutil.rmtree(VENDOR, ignore_errors=True)
    for source, target in FILES.items():
        copy(MODULES / source, VENDOR / target)
    for font in (MODULES / "@jupyter-widgets/html-manager/dist").glob("*.woff2"):
        copy(font, VENDOR / "widgets" / font.name)
    copy_fonts(VENDOR / "fonts")
    # Vega, Vega-Lite and Vega-Embed as one script. It is wrapped in a function because it would
    # leave global names behind that clash with Sphinx's own scripts.
    version = re.fullmatch(r"(\d+\.\d+)\.\d+", VEGALITE_VERSION).group(1)
    bundle = vl_convert.javascript_bundle(vl_version=version)
    [licence] = [path for path in metadata.files("vl-convert-python") if path.name == "LICENSE"]
    copy(Path(licence.locate()), VENDOR / "vega-bundle.LICENSE")
    (VENDOR / "vega-bundle.js").write_text(
        "(function () {\n" + bundle + "\n})();\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
