"""Every picture of the book, drawn with Altair from one palette.

A chart says what it found: each function asks for a ``title`` that states the finding, names the
units on its axes, and carries a ``description`` for screen readers (one is written from the data
where none is given). No chart sets the colour of a text, so the page's light or dark theme decides.
Charts fill the width of the page (``width="container"``) and hold aggregated data only, so the page
stays small and Altair's limit of 5,000 rows is never met.

Charts of simulations
    tail_chart              P[T > t] on two log axes, with the band of two standard errors
    mean_by_load            a mean against load, one line for each policy
    compare_bars            policies (and classes) side by side, with intervals
    theory_vs_simulation    simulated points with intervals on the curve of the theorem
    running_mean            the mean of the first n jobs, as n grows
    interval_chart          many intervals against one true value
    line_chart              any table, as lines
Charts of one sample path
    arrivals_and_departures A(t) and D(t), and the area between them
    job_bars                the same area, cut into one bar for each job
    number_in_system        N(t) and its time average
Charts of a law
    histogram               observed values, as a density or as counts
    survival_chart          P[S > x] of one or more laws
    density_chart           densities of one or more laws
A picture of a page's own
    finish                  gives any Altair chart its title, description, width and height
Sliders that move in a static page
    Slider                  a named number that the reader sets
    formula_chart           closed formulas, evaluated in the page
    with_slider             a grid computed beforehand, filtered by a slider or a menu
Colour
    PALETTE, HUES, NEUTRAL   the colours in order, by name, and the one for what is not a policy
    POLICY_COLOURS, POLICY_DASHES, POLICY_SHAPES, series_style
    contrast_ratio, colour_distance
Still pictures
    to_svg, save_svg        a picture of a chart that takes its text colour from the page
    still_pictures          shows every chart of a notebook so, without a network
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import altair as alt
import numpy as np
import pandas as pd

__all__ = [
    "HUES",
    "NEUTRAL",
    "PALETTE",
    "POLICY_COLOURS",
    "POLICY_DASHES",
    "POLICY_SHAPES",
    "SeriesStyle",
    "Slider",
    "arrivals_and_departures",
    "colour_distance",
    "compare_bars",
    "contrast_ratio",
    "density_chart",
    "finish",
    "formula_chart",
    "histogram",
    "interval_chart",
    "job_bars",
    "line_chart",
    "mean_by_load",
    "number_in_system",
    "running_mean",
    "save_svg",
    "series_style",
    "still_pictures",
    "survival_chart",
    "tail_chart",
    "theory_vs_simulation",
    "to_svg",
    "with_slider",
]

AnyChart: TypeAlias = "alt.Chart | alt.LayerChart"

# --------------------------------------------------------------------------------------------------
# Colour
# --------------------------------------------------------------------------------------------------

HUES: dict[str, str] = {
    "blue": "#1e6c90",
    "vermilion": "#c6360c",
    "gold": "#a89000",
    "pink": "#d866c0",
    "sky": "#5a90fc",
    "violet": "#a24ec6",
    "sage": "#789078",
    "grey": "#6c665a",
}
"""Eight colours found by moving Okabe and Ito's hues apart inside one band of luminance.

Each stands out at 3:1 or more from a white page and from the dark page, and any two stay apart to
a reader with protanopia, deuteranopia or tritanopia; ``tests/test_charts.py`` measures both.
"""

PALETTE: list[str] = [
    HUES[hue] for hue in ("sky", "gold", "violet", "sage", "pink", "vermilion", "blue")
]
"""The colours in the order in which series that are not policies take them.

Blue and vermilion come last: they are FCFS and SRPT on most pages.
"""

NEUTRAL = HUES["grey"]
"""The colour of what is not a policy: theorems, averages, true values."""

LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#14181e"

_DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0),
    (6, 3),
    (2, 2),
    (9, 3, 2, 3),
    (14, 4),
    (3, 6),
)
_SHAPES: tuple[str, ...] = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
)

# A policy keeps its colour, its dash and its point shape through the whole book. Rules that meet
# in one picture differ in colour; rules that share a colour differ in dash and in shape.
_POLICY_STYLE: dict[str, tuple[str, int]] = {
    "fcfs": ("blue", 0),
    "random": ("blue", 1),
    "jsq": ("blue", 2),
    "edf": ("blue", 3),
    "edf-pr": ("blue", 4),
    "srpt": ("vermilion", 0),
    "wspt": ("vermilion", 1),
    "split": ("vermilion", 2),
    "ljf": ("vermilion", 3),
    "sjf": ("gold", 0),
    "c-mu": ("gold", 1),
    "thresh-split": ("gold", 2),
    "two-choices": ("gold", 3),
    "psjf": ("pink", 0),
    "priority": ("pink", 1),
    "tags-split": ("pink", 2),
    "priority-pr": ("pink", 3),
    "ps": ("sky", 0),
    "drr": ("sky", 1),
    "vtc": ("sky", 2),
    "boost": ("sky", 3),
    "gamma-boost": ("sky", 4),
    "fb": ("violet", 0),
    "gittins": ("violet", 1),
    "sek": ("violet", 2),
    "justitia": ("violet", 3),
    "lcfs": ("sage", 0),
    "lcfs-pr": ("sage", 1),
    "serpt": ("sage", 2),
    "lrpt": ("sage", 3),
}
POLICY_COLOURS: dict[str, str] = {name: HUES[c] for name, (c, _) in _POLICY_STYLE.items()}
POLICY_DASHES: dict[str, list[int]] = {
    name: list(_DASHES[k]) for name, (_, k) in _POLICY_STYLE.items()
}
POLICY_SHAPES: dict[str, str] = {name: _SHAPES[k] for name, (_, k) in _POLICY_STYLE.items()}

# Words that a chart of the book uses for what is not a policy.
_NEUTRAL_WORDS = ("theory", "theorem", "exact", "true value")


class SeriesStyle(NamedTuple):
    """How the series of one chart are drawn; the four lists run in step."""

    names: list[str]
    colours: list[str]
    dashes: list[list[int]]
    shapes: list[str]


def series_style(names: Iterable[str]) -> SeriesStyle:
    """Give each series of a chart its colour, dash and point shape.

    A policy gets its own (see `POLICY_COLOURS`), also with options behind it, as in
    ``sjf:by=prediction``, and in capitals. Words for theory are grey. Every other name, such as a
    class or a law, gets the first colour that this chart does not use yet.

    Parameters
    ----------
    names
        Labels in the order of the legend. Repeats are dropped.

    Returns
    -------
    SeriesStyle
        ``names``, ``colours``, ``dashes``, ``shapes``: four lists of one length.
    """
    unique = list(dict.fromkeys(str(name) for name in names))
    picked: dict[str, tuple[str, int]] = {}
    for name in unique:
        word = name.lower().strip()
        base = word.split(":")[0]
        if base in _POLICY_STYLE:
            picked[name] = _POLICY_STYLE[base]
        elif any(word.startswith(neutral) for neutral in _NEUTRAL_WORDS):
            picked[name] = ("grey", 0)
    hue_of = {colour: hue for hue, colour in HUES.items()}
    colours = [hue_of[colour] for colour in PALETTE]
    used = {style[0] for style in picked.values()}
    spare = [colour for colour in colours if colour not in used] or colours
    others = [name for name in unique if name not in picked]
    for i, name in enumerate(others):
        picked[name] = (spare[i % len(spare)], i // len(spare))
    taken: set[tuple[str, int]] = set()
    for name in unique:
        colour, dash = picked[name]
        # Two series may ask for one style ("sjf" and "sjf:by=prediction"): the later one moves on
        # to the next dash and keeps its colour.
        for step in range(len(_DASHES)):
            candidate = (colour, (dash + step) % len(_DASHES))
            if candidate not in taken:
                break
        taken.add(candidate)
        picked[name] = candidate
    return SeriesStyle(
        unique,
        [HUES[picked[name][0]] for name in unique],
        [list(_DASHES[picked[name][1]]) for name in unique],
        [_SHAPES[picked[name][1]] for name in unique],
    )


def _linear_rgb(colour: str) -> np.ndarray:
    digits = colour.lstrip("#")
    if len(digits) != 6 or any(c not in "0123456789abcdefABCDEF" for c in digits):
        raise ValueError(f"colour={colour!r}: a colour is written #rrggbb")
    srgb = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast_ratio(first: str, second: str) -> float:
    """Contrast ratio of two colours ``#rrggbb``, from 1 (equal) to 21 (black on white).

    References
    ----------
    Web Content Accessibility Guidelines 2.2, definitions of *contrast ratio* and *relative
    luminance*. Graphics need 3:1 against what is behind them.
    """
    weights = np.array([0.2126, 0.7152, 0.0722])
    dark, light = sorted(float(_linear_rgb(colour) @ weights) for colour in (first, second))
    return (light + 0.05) / (dark + 0.05)


# Rows act on linear red, green and blue.
_VISION: dict[str, np.ndarray] = {
    "typical": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}

_RGB_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_CONES_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def colour_distance(first: str, second: str, vision: str = "typical") -> float:
    """Distance of two colours as a reader with this vision sees them.

    Parameters
    ----------
    first, second
        Colours ``#rrggbb``.
    vision
        ``"typical"``, ``"protanopia"``, ``"deuteranopia"`` or ``"tritanopia"``.

    Returns
    -------
    float
        Euclidean distance in the Oklab space, times 100. About 2 is just noticeable.

    References
    ----------
    G. M. Machado, M. M. Oliveira, L. A. F. Fernandes (2009), *A physiologically-based model for
    simulation of color vision deficiency* (severity 1); B. Ottosson (2020), *A perceptual color
    space for image processing*.
    """
    if vision not in _VISION:
        raise ValueError(f"vision={vision!r}: one of {', '.join(_VISION)}")
    seen = []
    for colour in (first, second):
        rgb = np.clip(_VISION[vision] @ _linear_rgb(colour), 0.0, 1.0)
        seen.append(_CONES_TO_OKLAB @ np.cbrt(_RGB_TO_CONES @ rgb))
    return float(100 * np.linalg.norm(seen[0] - seen[1]))


# --------------------------------------------------------------------------------------------------
# Parts that the charts share
# --------------------------------------------------------------------------------------------------

_HEIGHT = 300


def _lines(text: str, longest: int = 46) -> list[str]:
    """Break a title into even lines: Vega breaks none, and a phone shows about 46 letters."""
    fewest = len(textwrap.wrap(text, longest))
    for width in range(1, longest):
        lines = textwrap.wrap(text, width, break_long_words=False)
        if len(lines) <= fewest and max(map(len, lines)) <= width:
            return lines
    return textwrap.wrap(text, longest)


def _title(title: str, subtitle: str | None = None) -> alt.TitleParams:
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"title={title!r}: a chart needs a title that states what it found")
    lines = _lines(title)
    options: dict[str, Any] = {"anchor": "start", "frame": "bounds"}
    if subtitle:
        options["subtitle"] = textwrap.wrap(subtitle, 56)
    return alt.TitleParams(text=lines, **options)


def finish(
    chart: AnyChart,
    title: str,
    description: str,
    height: int = _HEIGHT,
    subtitle: str | None = None,
) -> AnyChart:
    """Give a chart of one's own what every chart of the book has.

    Parameters
    ----------
    chart
        Layers and encodings, without size or title. One plot: several panels cannot fill a page.
    title
        What the chart found; broken into lines that a phone can show.
    description
        Text for screen readers.
    height
        In pixels; the width is that of the page.
    subtitle
        A second, quieter line.

    Returns
    -------
    altair.Chart or altair.LayerChart
        A copy.

    Raises
    ------
    ValueError
        Where title or description is empty.
    """
    if not isinstance(description, str) or not description.strip():
        raise ValueError(
            f"description={description!r}: a chart needs words for those who cannot see it"
        )
    return chart.properties(
        title=_title(title, subtitle),
        description=" ".join(description.split()),
        width="container",
        height=height,
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else text + "."


def _describe(
    title: str, kind: str, x_title: str, y_title: str, series: Sequence[str], facts: str = ""
) -> str:
    parts = [_sentence(title), _sentence(f"{kind} of {y_title} against {x_title}")]
    if len(series) > 1:
        parts.append(_sentence("Series: " + ", ".join(series)))
    if facts:
        parts.append(_sentence(facts))
    return " ".join(parts)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _rounded(values: Any, digits: int = 6) -> Any:
    """Keep `digits` significant digits: a pixel shows fewer, and the page stays small."""
    array = np.asarray(values, dtype=float)
    flat = [float(f"{value:.{digits}g}") for value in array.ravel()]
    return np.array(flat).reshape(array.shape)


def _legend(names: Sequence[str], filled: bool = False) -> alt.Legend | None:
    if len(names) < 2:
        return None
    # As many columns as fit a phone.
    widest = max(len(name) for name in names) * 7 + 32
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=max(1, min(len(names), 320 // widest)),
        labelLimit=280,
        # A dashed border would hide the shape of a point.
        symbolStrokeWidth=0 if filled else 2.5,
        symbolSize=140,
        symbolOpacity=1,
    )


def _colour(field: str, style: SeriesStyle, filled: bool = False) -> alt.Color:
    return alt.Color(
        f"{field}:N",
        scale=alt.Scale(domain=style.names, range=style.colours),
        sort=style.names,
        legend=_legend(style.names, filled),
    )


def _dash(field: str, style: SeriesStyle, filled: bool = False) -> alt.StrokeDash:
    return alt.StrokeDash(
        f"{field}:N",
        scale=alt.Scale(domain=style.names, range=style.dashes),
        sort=style.names,
        legend=_legend(style.names, filled),
    )


def _shape(field: str, style: SeriesStyle) -> alt.Shape:
    return alt.Shape(
        f"{field}:N",
        scale=alt.Scale(domain=style.names, range=style.shapes),
        sort=style.names,
        legend=_legend(style.names, filled=True),
    )


def _scale(log: bool, domain: Sequence[float] | None = None, zero: bool = False) -> alt.Scale:
    options: dict[str, Any] = {"type": "log" if log else "linear", "nice": domain is None}
    if not log:
        options["zero"] = zero
    if domain is not None:
        options["domain"] = [float(v) for v in domain]
        options["clamp"] = True
    return alt.Scale(**options)


def _axis(log: bool, values: Any = None) -> alt.Axis:
    """Ask for few labels; on a log axis for whole powers of ten, or 1, 2, 5 on a short one."""
    if not log or values is None:
        return alt.Axis(tickCount=6)
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers) & (numbers > 0)]
    if len(numbers) == 0:
        return alt.Axis(tickCount=6)
    first = math.floor(math.log10(float(numbers.min())))
    last = math.ceil(math.log10(float(numbers.max())))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    stride = max(1, math.ceil((last - first) / 8))
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1, stride) for step in steps]
    # Words for large numbers, powers for tiny ones: 10k, 0.01, 1e-6.
    plain = "datum.value >= 1000 ? format(datum.value, '~s') : datum.value < 0.001 ? "
    return alt.Axis(
        values=ticks, labelExpr=plain + "format(datum.value, '.0e') : format(datum.value, '~g')"
    )


def _columns(frame: pd.DataFrame, needed: Sequence[str], name: str) -> pd.DataFrame:
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise ValueError(
            f"{name} has columns {list(frame.columns)}: {', '.join(needed)} are needed, "
            f"{', '.join(missing)} missing"
        )
    return frame


def _named(results: Any) -> dict[str, Any]:
    """Turn one result, several, or a mapping from label to result into a mapping."""
    if isinstance(results, Mapping):
        named = {str(label): result for label, result in results.items()}
    elif isinstance(results, Sequence) and not isinstance(results, str):
        named = {}
        for result in results:
            label = str(result.policy)
            if label in named:
                raise ValueError(
                    f"results holds two runs of {label!r}: pass a mapping from label to result"
                )
            named[label] = result
    else:
        named = {str(getattr(results, "policy", "simulation")): results}
    if not named:
        raise ValueError("results=[]: a chart needs at least one result")
    return named


def _thin(frame: pd.DataFrame, points: int) -> pd.DataFrame:
    """Keep at most `points` rows, evenly spaced by rank, the ends among them."""
    if len(frame) <= points:
        return frame
    keep = np.unique(np.linspace(0, len(frame) - 1, points).round().astype(int))
    return frame.iloc[keep]


def _tail_frame(label: str, result: Any, points: int) -> pd.DataFrame:
    if callable(getattr(result, "tail", None)) and not isinstance(result, pd.DataFrame):
        frame = result.tail()
    elif isinstance(result, pd.DataFrame):
        frame = result
    else:
        frame = pd.DataFrame(result)
    frame = _columns(frame, ["t", "probability"], f"the tail of {label!r}")
    frame = frame[(frame["t"] > 0) & (frame["probability"] > 0)].sort_values("t")
    frame = _thin(frame, points)
    probability = frame["probability"].to_numpy(dtype=float)
    error = frame["se"].to_numpy(dtype=float) if "se" in frame else np.zeros(len(frame))
    error = np.nan_to_num(error)
    # On a log axis the band is taken on the log scale, so that it stays above zero.
    spread = np.exp(np.minimum(2 * error / probability, 3.0))
    return pd.DataFrame(
        {
            "series": label,
            "t": _rounded(frame["t"], 5),
            "probability": _rounded(probability, 5),
            "low": _rounded(probability / spread, 4),
            "high": _rounded(np.minimum(probability * spread, 1.0), 4),
        }
    )


def tail_chart(
    results: Any,
    *,
    title: str,
    quantity: str = "response time",
    unit: str = "seconds",
    reference: Mapping[str, Callable[[np.ndarray], Any]] | None = None,
    description: str | None = None,
    smallest: float = 1e-7,
    points: int = 120,
    height: int = _HEIGHT,
    log_x: bool = True,
) -> AnyChart:
    """Draw the tail P[T > t] of one or more results, both axes logarithmic.

    Parameters
    ----------
    results
        A `Result`, a sequence of them, or a mapping from label to a `Result` or to a data frame
        with columns ``t``, ``probability`` and, where known, ``se``.
    title
        What the chart found.
    quantity, unit
        What is measured, and in what.
    reference
        Exact tails: a mapping from label to a function of t. Drawn over the same range.
    description
        Text for screen readers; written from the data where it is left out.
    smallest
        Probabilities below it are not drawn.
    points
        At most this many points a series.
    log_x
        False draws t on a linear axis, on which an exponential tail is a straight line.

    Returns
    -------
    altair.LayerChart
        Lines, with a band of two standard errors around each.
    """
    named = _named(results)
    frames = [_tail_frame(label, result, points) for label, result in named.items()]
    table = pd.concat(frames, ignore_index=True)
    table = table[table["probability"] >= smallest]
    if table.empty:
        raise ValueError("results: no positive probability to draw")
    if log_x:
        # Waits reach down to a millionth of the mean; where every tail is still flat, there is
        # nothing to see.
        falls = [
            part["t"][part["probability"] >= 0.98 * part["probability"].max()].max()
            for _, part in table.groupby("series")
        ]
        table = table[table["t"] >= min(falls)]
    labels = list(named)
    if reference:
        low, high = float(table["t"].min()), float(table["t"].max())
        grid = np.geomspace(low, high, points) if log_x else np.linspace(low, high, points)
        for label, law in reference.items():
            probability = np.asarray(law(grid), dtype=float)
            keep = probability >= smallest
            exact = pd.DataFrame(
                {
                    "series": label,
                    "t": _rounded(grid[keep], 5),
                    "probability": _rounded(probability[keep], 5),
                }
            )
            table = pd.concat([table, exact], ignore_index=True)
            labels.append(label)
    style = series_style(labels)
    x_title, y_title = f"t ({unit})", f"P[{quantity} > t]"
    x = alt.X("t:Q", title=x_title, scale=_scale(log_x), axis=_axis(log_x, table["t"]))
    lowest = 10.0 ** math.floor(math.log10(float(table["probability"].min())))
    y = alt.Y(
        "probability:Q",
        title=y_title,
        scale=_scale(True, [lowest, 1.0]),
        axis=_axis(True, [lowest, 1.0]),
    )
    base = alt.Chart(table)
    band = (
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.2)
        .encode(x=x, y=alt.Y("low:Q", title=y_title), y2="high:Q", color=_colour("series", style))
    )
    line = base.mark_line(strokeWidth=2).encode(
        x=x,
        y=y,
        color=_colour("series", style),
        strokeDash=_dash("series", style),
        tooltip=[
            alt.Tooltip("series:N", title="series"),
            alt.Tooltip("t:Q", title=x_title, format=".4~g"),
            alt.Tooltip("probability:Q", title=y_title, format=".3~g"),
        ],
    )
    facts = "; ".join(
        f"{label} is at {_number(part['probability'].iloc[-1])} for t = "
        f"{_number(part['t'].iloc[-1])}"
        for label, part in table.groupby("series", sort=False)
    )
    text = description or _describe(title, "Log-log lines", x_title, y_title, labels, facts)
    return finish(alt.layer(band, line), title, text, height)


def mean_by_load(
    table: pd.DataFrame,
    *,
    title: str,
    measure: str = "mean response time",
    unit: str = "seconds",
    series: str = "policy",
    value: str = "mean",
    log_y: bool = False,
    y_domain: Sequence[float] | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw a mean against load, one line for each policy, with intervals where they are known.

    Parameters
    ----------
    table
        Columns ``load``, `series`, `value` and, where known, ``low`` and ``high``.
    title
        What the chart found.
    measure, unit
        What is measured, and in what.
    log_y
        True draws the mean on a log axis.
    y_domain
        Fixes the vertical axis, for a chart with a slider.

    Returns
    -------
    altair.LayerChart
    """
    _columns(table, ["load", series, value], "table")
    style = series_style(table[series])
    data = table.copy()
    for column in (value, "low", "high"):
        if column in data:
            data[column] = _rounded(data[column], 5)
    y_title = f"{measure} ({unit})"
    x = alt.X(
        "load:Q",
        title="load (share of capacity asked for)",
        scale=_scale(False),
        axis=_axis(False),
    )
    y = alt.Y(
        f"{value}:Q",
        title=y_title,
        scale=_scale(log_y, y_domain, zero=True),
        axis=_axis(log_y, data[value] if y_domain is None else y_domain),
    )
    base = alt.Chart(data)
    line = base.mark_line(strokeWidth=2).encode(
        x=x,
        y=y,
        color=_colour(series, style, filled=True),
        strokeDash=_dash(series, style, filled=True),
    )
    point = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=x,
        y=y,
        color=_colour(series, style, filled=True),
        shape=_shape(series, style),
        tooltip=[
            alt.Tooltip(f"{series}:N"),
            alt.Tooltip("load:Q", format=".3~g"),
            alt.Tooltip(f"{value}:Q", title=y_title, format=".4~g"),
        ],
    )
    layers: list[Any] = [line, point]
    if {"low", "high"} <= set(data.columns):
        bars = base.mark_rule(strokeWidth=1.5).encode(
            x=x,
            y=alt.Y("low:Q", title=y_title),
            y2="high:Q",
            color=_colour(series, style, filled=True),
        )
        layers.insert(0, bars)
    facts = "; ".join(
        f"{label}: {_number(part.sort_values('load')[value].iloc[-1])} at load "
        f"{_number(part['load'].max())}"
        for label, part in data.groupby(series, sort=False)
    )
    text = description or _describe(title, "Lines", "load", y_title, style.names, facts)
    return finish(alt.layer(*layers), title, text, height)


_MEASURES = {
    "response": "mean response time",
    "waiting": "mean waiting time",
    "slowdown": "mean slowdown",
}


def _measure_rows(label: str, result: Any, measure: str, statistic: str) -> list[dict[str, Any]]:
    classes = dict(getattr(result, "per_class", {}) or {})
    # A single class is the whole workload: it would only repeat the bar for all jobs.
    sources = classes if len(classes) > 1 else {"all jobs": result}
    rows = []
    for name, source in sources.items():
        summary = getattr(source, measure)
        if statistic == "mean":
            value, interval = summary.mean, summary.ci95
        else:
            probability = float(f"0.{statistic[1:]}")
            value, interval = getattr(summary, statistic), summary.quantile_ci(probability)
        if value is None:
            continue
        low, high = interval if interval is not None else (math.nan, math.nan)
        rows.append({"policy": label, "group": name, "value": value, "low": low, "high": high})
    return rows


def compare_bars(
    results: Any,
    *,
    title: str,
    measure: str = "response",
    statistic: str = "mean",
    measure_title: str | None = None,
    unit: str = "seconds",
    description: str | None = None,
    log: bool = False,
    height: int | None = None,
) -> AnyChart:
    """Compare policies side by side, for each class, with intervals.

    Parameters
    ----------
    results
        A sequence of `Result`, a mapping from label to `Result`, or a data frame with columns
        ``policy``, ``value`` and, where known, ``group`` (a class, a percentile), ``low`` and
        ``high``.
    title
        What the chart found.
    measure
        ``"response"``, ``"waiting"`` or ``"slowdown"``; read from a `Result`.
    statistic
        ``"mean"``, ``"p50"``, ``"p90"``, ``"p99"`` or ``"p999"``; read from a `Result`.
    measure_title, unit
        The words on the axis.
    log
        True draws points on a log axis instead of bars: a bar needs a zero.

    Returns
    -------
    altair.LayerChart
        Horizontal bars, one row for each policy, grouped by class.
    """
    if isinstance(results, pd.DataFrame):
        table = _columns(results, ["policy", "value"], "results").copy()
        axis_title = measure_title or "value"
    else:
        rows: list[dict[str, Any]] = []
        for label, result in _named(results).items():
            rows += _measure_rows(label, result, measure, statistic)
        if not rows:
            raise ValueError(f"results: no {measure} {statistic} has a value to draw")
        table = pd.DataFrame(rows)
        name = _MEASURES.get(measure, measure)
        default = name if statistic == "mean" else f"{statistic} of {name.removeprefix('mean ')}"
        axis_title = measure_title or default
    if "group" not in table:
        table["group"] = "all jobs"
    for column in ("low", "high"):
        if column not in table:
            table[column] = math.nan
    for column in ("value", "low", "high"):
        table[column] = _rounded(table[column], 5)
    policies = list(dict.fromkeys(table["policy"].astype(str)))
    groups = list(dict.fromkeys(table["group"].astype(str)))
    style = series_style(policies)
    x_title = f"{axis_title} ({unit})" if unit else axis_title
    # An offset inside each group instead of a facet: a faceted chart cannot fill its container.
    y = alt.Y("group:N", sort=groups, title=None, axis=alt.Axis(labelLimit=140))
    offset = alt.YOffset("policy:N", sort=policies, scale=alt.Scale(paddingInner=0.15))
    x = alt.X(
        "value:Q", title=x_title, scale=_scale(log, zero=True), axis=_axis(log, table["value"])
    )
    tooltip = [
        alt.Tooltip("policy:N"),
        alt.Tooltip("group:N"),
        alt.Tooltip("value:Q", title=x_title, format=".4~g"),
        alt.Tooltip("low:Q", title="interval from", format=".4~g"),
        alt.Tooltip("high:Q", title="interval to", format=".4~g"),
    ]
    base = alt.Chart(table)
    colour = _colour("policy", style, filled=log)
    colour_scale = alt.Scale(domain=style.names, range=style.colours)
    if log:
        marks: Any = base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, yOffset=offset, color=colour, shape=_shape("policy", style), tooltip=tooltip
        )
    else:
        # Pale inside, full colour around: the interval stays visible where it crosses its bar.
        marks = base.mark_bar(fillOpacity=0.45, strokeWidth=1.5).encode(
            x=x,
            y=y,
            yOffset=offset,
            color=colour,
            stroke=alt.Stroke(
                "policy:N", scale=colour_scale, sort=style.names, legend=_legend(style.names)
            ),
            tooltip=tooltip,
        )
    bars = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(strokeWidth=3)
        .encode(x=alt.X("low:Q", title=x_title), x2="high:Q", y=y, yOffset=offset, color=colour)
    )
    told = []
    for policy, group, middle, low, high in zip(
        table["policy"], table["group"], table["value"], table["low"], table["high"], strict=True
    ):
        words = f"{policy}: " if len(groups) == 1 else f"{policy}, {group}: "
        within = "" if math.isnan(low) else f" ({_number(low)} to {_number(high)})"
        told.append(words + _number(middle) + within)
    facts = "; ".join(told)
    kind = "Points" if log else "Bars"
    text = description or _describe(title, kind, "policy", x_title, policies, facts)
    size = height or max(90, 40 + 30 * len(table))
    return finish(alt.layer(marks, bars), title, text, size)


def line_chart(
    table: pd.DataFrame,
    *,
    title: str,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    series: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    points: bool = False,
    x_domain: Sequence[float] | None = None,
    y_domain: Sequence[float] | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw lines through a table, one for each value of `series`.

    Parameters
    ----------
    table
        Columns `x`, `y` and, where named, `series`; others stay for :func:`with_slider`.
    title
        What the chart found.
    x, y, series
        Names of columns.
    x_title, y_title
        Axis titles, with their units.
    log_x, log_y
        Logarithmic axes; rows that they cannot show are left out.
    points
        Mark the rows of the table on the lines.
    x_domain, y_domain
        Fix an axis, for a chart with a slider.

    Returns
    -------
    altair.LayerChart
    """
    named = series or "series"
    _columns(table, [x, y] + ([series] if series else []), "table")
    data = table.copy()  # with its other columns, for a slider
    if not series:
        data[named] = y_title
    data[x], data[y] = _rounded(data[x], 5), _rounded(data[y], 5)
    data = data[np.isfinite(data[x]) & np.isfinite(data[y])]
    if log_x:
        data = data[data[x] > 0]
    if log_y:
        data = data[data[y] > 0]
    style = series_style(data[named])
    channels = {
        "x": alt.X(
            f"{x}:Q",
            title=x_title,
            scale=_scale(log_x, x_domain),
            axis=_axis(log_x, data[x] if x_domain is None else x_domain),
        ),
        "y": alt.Y(
            f"{y}:Q",
            title=y_title,
            scale=_scale(log_y, y_domain),
            axis=_axis(log_y, data[y] if y_domain is None else y_domain),
        ),
        "color": _colour(named, style, filled=points),
        "tooltip": [
            alt.Tooltip(f"{named}:N"),
            alt.Tooltip(f"{x}:Q", title=x_title, format=".4~g"),
            alt.Tooltip(f"{y}:Q", title=y_title, format=".4~g"),
        ],
    }
    base = alt.Chart(data)
    layers: list[Any] = [
        base.mark_line(strokeWidth=2, clip=True).encode(
            strokeDash=_dash(named, style, filled=points), **channels
        )
    ]
    if points:
        layers.append(
            base.mark_point(filled=True, size=45, opacity=1, clip=True).encode(
                shape=_shape(named, style), **channels
            )
        )
    facts = "; ".join(
        f"{label} is at {_number(part[y].iloc[-1])} for {_number(part[x].iloc[-1])}"
        for label, part in data.sort_values(x).groupby(named, sort=False)
    )
    text = description or _describe(title, "Lines", x_title, y_title, style.names, facts)
    return finish(alt.layer(*layers), title, text, height)


def theory_vs_simulation(
    points: pd.DataFrame,
    curve: pd.DataFrame | Callable[[np.ndarray], Any] | None,
    *,
    title: str,
    x_title: str,
    y_title: str,
    x: str = "x",
    series: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    x_domain: Sequence[float] | None = None,
    y_domain: Sequence[float] | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Put simulated points, with their intervals, on the curve that the theorem predicts.

    Parameters
    ----------
    points
        Columns `x`, ``mean``, ``low``, ``high``, and `series` where one is named.
    curve
        Columns `x` and ``y`` (and `series`), or a function of x, or None where no theorem exists.
    title
        What the chart found.
    x_title, y_title
        Axis titles, with their units.
    x, series
        Names of columns.
    x_domain, y_domain
        Fix an axis, for a chart with a slider.

    Returns
    -------
    altair.LayerChart
        The line is the theorem; points with bars are the simulation and its 95 % interval.
    """
    needed = [x, "mean", "low", "high"] + ([series] if series else [])
    _columns(points, needed, "points")
    data = points[needed].copy()
    data.columns = pd.Index(["x", "mean", "low", "high"] + (["series"] if series else []))
    if not series:
        data["series"] = "simulation"
    for column in ("mean", "low", "high"):
        data[column] = _rounded(data[column], 5)
    line_data = None
    if callable(curve):
        low, high = float(data["x"].min()), float(data["x"].max())
        grid = np.geomspace(low, high, 120) if log_x else np.linspace(low, high, 120)
        line_data = pd.DataFrame({"x": grid, "y": np.asarray(curve(grid), dtype=float)})
    elif curve is not None:
        _columns(curve, [x, "y"] + ([series] if series else []), "curve")
        line_data = curve[[x, "y"] + ([series] if series else [])].copy()
        line_data.columns = pd.Index(["x", "y"] + (["series"] if series else []))
    if line_data is not None:
        if "series" not in line_data:
            line_data["series"] = "theory"
        line_data["x"] = _rounded(line_data["x"], 5)
        line_data["y"] = _rounded(line_data["y"], 5)
        line_data = line_data[np.isfinite(line_data["y"])]
    if log_y:
        # An interval that reaches zero has no end on a log axis: it is drawn to the bottom.
        heights = [data["mean"]] + ([line_data["y"]] if line_data is not None else [])
        positive: pd.Series = pd.concat(heights)
        floor = float(positive[positive > 0].min()) / 2 if (positive > 0).any() else 1.0
        data["low"] = data["low"].clip(lower=floor)
    names = list(data["series"]) + (list(line_data["series"]) if line_data is not None else [])
    style = series_style(names)
    x_channel = alt.X(
        "x:Q", title=x_title, scale=_scale(log_x, x_domain), axis=_axis(log_x, data["x"])
    )
    y_scale = _scale(log_y, y_domain, zero=True)
    y_axis = _axis(log_y, data["mean"] if y_domain is None else y_domain)
    layers: list[Any] = []
    if line_data is not None:
        layers.append(
            alt.Chart(line_data)
            .mark_line(strokeWidth=2, clip=True)
            .encode(
                x=x_channel,
                y=alt.Y("y:Q", title=y_title, scale=y_scale, axis=y_axis),
                color=_colour("series", style, filled=True),
                strokeDash=_dash("series", style, filled=True) if series else alt.Undefined,
            )
        )
    base = alt.Chart(data)
    layers.append(
        base.mark_rule(strokeWidth=2, clip=True).encode(
            x=x_channel,
            y=alt.Y("low:Q", title=y_title, scale=y_scale, axis=y_axis),
            y2="high:Q",
            color=_colour("series", style, filled=True),
        )
    )
    layers.append(
        base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(
            x=x_channel,
            y=alt.Y("mean:Q", title=y_title, scale=y_scale, axis=y_axis),
            color=_colour("series", style, filled=True),
            shape=_shape("series", style) if series else alt.Undefined,
            tooltip=[
                alt.Tooltip("series:N"),
                alt.Tooltip("x:Q", title=x_title, format=".4~g"),
                alt.Tooltip("mean:Q", title=y_title, format=".4~g"),
                alt.Tooltip("low:Q", title="interval from", format=".4~g"),
                alt.Tooltip("high:Q", title="interval to", format=".4~g"),
            ],
        )
    )
    last = data.sort_values("x").iloc[-1]
    facts = (
        f"At {_number(last['x'])} the simulation gives {_number(last['mean'])}, "
        f"95 % interval {_number(last['low'])} to {_number(last['high'])}"
    )
    kind = "Simulated points with intervals" + (" on a curve" if line_data is not None else "")
    text = description or _describe(title, kind, x_title, y_title, style.names, facts)
    return finish(alt.layer(*layers), title, text, height)


def running_mean(
    values: Mapping[str, Any] | Sequence[Any] | np.ndarray,
    *,
    title: str,
    quantity: str = "response time",
    unit: str = "seconds",
    expected: float | None = None,
    expected_label: str = "theory",
    points: int = 150,
    y_domain: Sequence[float] | None = None,
    log_y: bool = False,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw the mean of the first n jobs, as n grows: one line for each run.

    Parameters
    ----------
    values
        One array of per-job values, or a mapping from label to array.
    title
        What the chart found.
    expected
        The mean that theory gives, drawn as a level line where there is one.
    points
        At most this many points a run, spaced evenly in log n.

    Returns
    -------
    altair.LayerChart
    """
    runs = values if isinstance(values, Mapping) else {"simulation": values}
    frames = []
    for label, run in runs.items():
        series = np.asarray(run, dtype=float)
        if series.ndim != 1 or len(series) < 2:
            raise ValueError(
                f"values[{label!r}] has shape {series.shape}: a row of two or more jobs is needed"
            )
        count = np.unique(np.geomspace(1, len(series), points).astype(int))
        mean = np.cumsum(series)[count - 1] / count
        frames.append(pd.DataFrame({"jobs": count, "mean": _rounded(mean, 5), "run": str(label)}))
    table = pd.concat(frames, ignore_index=True)
    if log_y:
        table = table[table["mean"] > 0]  # no job has waited yet
    style = series_style(table["run"])
    y_title = f"mean {quantity} so far ({unit})"
    x = alt.X("jobs:Q", title="jobs so far", scale=_scale(True), axis=_axis(True, table["jobs"]))
    y_scale = _scale(log_y, y_domain)
    layers: list[Any] = [
        alt.Chart(table)
        .mark_line(strokeWidth=1.8, clip=True)
        .encode(
            x=x,
            y=alt.Y("mean:Q", title=y_title, scale=y_scale, axis=_axis(log_y, table["mean"])),
            color=_colour("run", style),
            strokeDash=_dash("run", style),
        )
    ]
    facts = "; ".join(
        f"{label} ends at {_number(part['mean'].iloc[-1])} after {part['jobs'].iloc[-1]} jobs"
        for label, part in table.groupby("run", sort=False)
    )
    if expected is not None and math.isfinite(expected):
        layers.append(_level(float(expected), expected_label, y_title, y_scale))
        facts += f"; {expected_label} is {_number(expected)}"
    text = description or _describe(title, "Lines", "jobs so far", y_title, style.names, facts)
    return finish(alt.layer(*layers), title, text, height)


def _level(value: float, label: str, y_title: str, y_scale: alt.Scale | None = None) -> alt.Chart:
    """Draw a level line in the neutral colour; tooltip and description say what it is."""
    frame = pd.DataFrame({"level": [float(_rounded(value, 5))], "label": [label]})
    y = alt.Y("level:Q", title=y_title, scale=y_scale if y_scale is not None else alt.Undefined)
    return (
        alt.Chart(frame)
        .mark_rule(strokeWidth=2, strokeDash=[6, 3], color=NEUTRAL)
        .encode(
            y=y,
            tooltip=[alt.Tooltip("label:N"), alt.Tooltip("level:Q", title=y_title, format=".4~g")],
        )
    )


def interval_chart(
    table: pd.DataFrame,
    *,
    title: str,
    true_value: float | None,
    x_title: str,
    label: str = "run",
    description: str | None = None,
    height: int | None = None,
) -> AnyChart:
    """Draw many intervals, one a row, against the value that they should cover.

    Parameters
    ----------
    table
        Columns `label`, ``mean``, ``low``, ``high``.
    title
        What the chart found.
    true_value
        The level line; None draws none.
    x_title
        Axis title, with its unit.

    Returns
    -------
    altair.LayerChart
        An interval that misses the true value is drawn in another colour, with a square.
    """
    _columns(table, [label, "mean", "low", "high"], "table")
    data = table[[label, "mean", "low", "high"]].copy()
    data.columns = pd.Index(["label", "mean", "low", "high"])
    data["label"] = data["label"].astype(str)
    for column in ("mean", "low", "high"):
        data[column] = _rounded(data[column], 5)
    if true_value is None:
        data["verdict"] = "interval"
        names, colours, shapes = ["interval"], [HUES["blue"]], ["circle"]
    else:
        hit = (data["low"] <= true_value) & (true_value <= data["high"])
        data["verdict"] = np.where(hit, "covers", "misses")
        names = ["covers", "misses"]
        colours, shapes = [HUES["blue"], HUES["vermilion"]], ["circle", "square"]
    style = SeriesStyle(names, colours, [[1, 0]] * len(names), shapes)
    order = list(data["label"])
    y = alt.Y("label:N", sort=order, title=label)
    x_scale = _scale(False)
    base = alt.Chart(data)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=x_title, scale=x_scale, axis=_axis(False)),
        x2="high:Q",
        y=y,
        color=_colour("verdict", style, filled=True),
    )
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(
        x=alt.X("mean:Q", title=x_title),
        y=y,
        color=_colour("verdict", style, filled=True),
        shape=_shape("verdict", style),
        tooltip=[
            alt.Tooltip("label:N", title=label),
            alt.Tooltip("mean:Q", format=".4~g"),
            alt.Tooltip("low:Q", title="interval from", format=".4~g"),
            alt.Tooltip("high:Q", title="interval to", format=".4~g"),
        ],
    )
    layers: list[Any] = [bars, dots]
    facts = ""
    if true_value is not None:
        level = pd.DataFrame({"level": [float(_rounded(true_value, 5))]})
        layers.insert(
            0,
            alt.Chart(level)
            .mark_rule(strokeWidth=2, strokeDash=[6, 3], color=NEUTRAL)
            .encode(x=alt.X("level:Q", title=x_title)),
        )
        facts = (
            f"{int((data['verdict'] == 'covers').sum())} of {len(data)} intervals cover the true "
            f"value {_number(true_value)}"
        )
    text = description or _describe(title, "Intervals", label, x_title, [], facts)
    return finish(alt.layer(*layers), title, text, height or max(120, 22 * len(data) + 20))


# --------------------------------------------------------------------------------------------------
# One sample path
# --------------------------------------------------------------------------------------------------

_PATH_LIMIT = 1500


def _path(
    arrival: Any, departure: Any, until: float | None
) -> tuple[np.ndarray, np.ndarray, float]:
    start = np.asarray(arrival, dtype=float)
    end = np.asarray(departure, dtype=float)
    if start.ndim != 1 or start.shape != end.shape or len(start) == 0:
        raise ValueError(
            f"arrival has shape {start.shape} and departure {end.shape}: two rows of one length, "
            "not empty, are needed"
        )
    if np.any(end < start):
        raise ValueError("departure: a job leaves before it arrives")
    horizon = float(np.max(end[np.isfinite(end)], initial=0.0)) if until is None else float(until)
    keep = start <= horizon
    start, end = start[keep], end[keep]
    if len(start) > _PATH_LIMIT:
        raise ValueError(
            f"arrival has {len(start)} jobs before until={horizon:g}: a picture of one path shows "
            f"at most {_PATH_LIMIT}"
        )
    return start, end, horizon


def _path_frame(start: np.ndarray, end: np.ndarray, horizon: float) -> pd.DataFrame:
    left = end[end <= horizon]
    times = np.unique(np.concatenate([[0.0], start, left, [horizon]]))
    arrivals = np.searchsorted(np.sort(start), times, side="right")
    departures = np.searchsorted(np.sort(left), times, side="right")
    return pd.DataFrame(
        {
            "time": _rounded(times, 6),
            "arrivals": arrivals,
            "departures": departures,
            "inside": arrivals - departures,
        }
    )


def arrivals_and_departures(
    arrival: Any,
    departure: Any,
    *,
    title: str,
    unit: str = "seconds",
    until: float | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw the jobs that have come, A(t), and the jobs that have gone, D(t).

    The area between the two staircases is the time that jobs have spent inside: the picture behind
    Little's law.

    Parameters
    ----------
    arrival, departure
        Times, one for each job, in one order; a job still inside may have departure ``inf``.
    title
        What the chart found.
    unit
        Unit of time.
    until
        Where the picture ends; the last departure where it is left out.

    Returns
    -------
    altair.LayerChart
    """
    start, end, horizon = _path(arrival, departure, until)
    table = _path_frame(start, end, horizon)
    area = float(np.sum(np.minimum(end, horizon) - start))
    style = SeriesStyle(
        ["arrived, A(t)", "departed, D(t)"],
        [HUES["blue"], HUES["vermilion"]],
        [[1, 0], [6, 3]],
        ["circle", "square"],
    )
    long = pd.concat(
        [
            pd.DataFrame(
                {"time": table["time"], "jobs": table["arrivals"], "which": "arrived, A(t)"}
            ),
            pd.DataFrame(
                {"time": table["time"], "jobs": table["departures"], "which": "departed, D(t)"}
            ),
        ],
        ignore_index=True,
    )
    x = alt.X("time:Q", title=f"time ({unit})", scale=_scale(False, [0.0, horizon]))
    between = (
        alt.Chart(table)
        .mark_area(interpolate="step-after", opacity=0.25, color=HUES["sky"])
        .encode(x=x, y=alt.Y("departures:Q", title="jobs"), y2="arrivals:Q")
    )
    steps = (
        alt.Chart(long)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=x,
            y=alt.Y("jobs:Q", title="jobs"),
            color=_colour("which", style),
            strokeDash=_dash("which", style),
        )
    )
    facts = (
        f"{len(start)} jobs arrive before {_number(horizon)} {unit} and spend {_number(area)} "
        f"{unit} inside altogether, which is the shaded area"
    )
    text = description or _describe(
        title, "Two staircases", f"time ({unit})", "jobs", style.names, facts
    )
    return finish(alt.layer(between, steps), title, text, height)


def job_bars(
    arrival: Any,
    departure: Any,
    *,
    title: str,
    unit: str = "seconds",
    until: float | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw each job as a bar from its arrival to its departure, the first at the bottom.

    The bars of served jobs and of jobs cut off at the end of the picture differ in colour.

    Parameters
    ----------
    arrival, departure
        Times, one for each job, in one order; a job still inside may have departure ``inf``.
    title
        What the chart found.
    unit
        Unit of time.
    until
        Where the picture ends; the last departure where it is left out.

    Returns
    -------
    altair.Chart
    """
    start, end, horizon = _path(arrival, departure, until)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    cut = end > horizon
    number = np.arange(len(start))
    table = pd.DataFrame(
        {
            "from": _rounded(start, 6),
            "to": _rounded(np.minimum(end, horizon), 6),
            "below": number + 0.1,
            "above": number + 0.9,
            "job": number + 1,
            "fate": np.where(cut, "still inside", "served"),
        }
    )
    names = ["served", "still inside"] if cut.any() else ["served"]
    style = SeriesStyle(
        names,
        [HUES["blue"], HUES["vermilion"]][: len(names)],
        [[1, 0]] * len(names),
        ["circle", "square"][: len(names)],
    )
    chart = (
        alt.Chart(table)
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title=f"time ({unit})", scale=_scale(False, [0.0, horizon])),
            x2="to:Q",
            y=alt.Y("below:Q", title="job", axis=alt.Axis(format="d", tickMinStep=1)),
            y2="above:Q",
            color=_colour("fate", style),
            tooltip=[
                alt.Tooltip("job:Q"),
                alt.Tooltip("from:Q", title="arrives", format=".4~g"),
                alt.Tooltip("to:Q", title="leaves or cut off", format=".4~g"),
            ],
        )
    )
    total = float(np.sum(np.minimum(end, horizon) - start))
    facts = f"{len(start)} bars with a total length of {_number(total)} {unit}"
    if cut.any():
        facts += f"; {int(cut.sum())} jobs are still inside at {_number(horizon)} {unit}"
    text = description or _describe(title, "Bars", f"time ({unit})", "job", [], facts)
    return finish(chart, title, text, height)


def number_in_system(
    arrival: Any,
    departure: Any,
    *,
    title: str,
    unit: str = "seconds",
    until: float | None = None,
    description: str | None = None,
    height: int = 220,
) -> AnyChart:
    """Draw the number of jobs inside, N(t), with its time average as a dashed level.

    Parameters
    ----------
    arrival, departure
        Times, one for each job, in one order; a job still inside may have departure ``inf``.
    title
        What the chart found.
    unit
        Unit of time.
    until
        Where the picture and the average end; the last departure where it is left out.

    Returns
    -------
    altair.LayerChart
    """
    start, end, horizon = _path(arrival, departure, until)
    table = _path_frame(start, end, horizon)[["time", "inside"]]
    average = float(np.sum(np.minimum(end, horizon) - start)) / horizon
    x = alt.X("time:Q", title=f"time ({unit})", scale=_scale(False, [0.0, horizon]))
    y = alt.Y("inside:Q", title="jobs inside", axis=alt.Axis(format="d", tickMinStep=1))
    base = alt.Chart(table)
    area = base.mark_area(
        interpolate="step-after",
        opacity=0.25,
        color=HUES["sky"],
        line={"color": HUES["blue"], "strokeWidth": 1.5},
    ).encode(x=x, y=y)
    level = _level(average, "time average", "jobs inside")
    facts = (
        f"Up to {_number(horizon)} {unit} the time average is {_number(average)} and the largest "
        f"value {int(table['inside'].max())}"
    )
    text = description or _describe(title, "Staircase", f"time ({unit})", "jobs inside", [], facts)
    return finish(alt.layer(area, level), title, text, height)


# --------------------------------------------------------------------------------------------------
# Laws
# --------------------------------------------------------------------------------------------------


def histogram(
    values: Any,
    *,
    title: str,
    x_title: str,
    bins: int = 50,
    log_x: bool = False,
    density: Mapping[str, Callable[[np.ndarray], Any]] | None = None,
    x_domain: Sequence[float] | None = None,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw observed values, binned beforehand; with densities over them where given.

    Parameters
    ----------
    values
        Numbers; for `log_x` positive ones.
    title
        What the chart found.
    x_title
        Axis title, with its unit.
    bins
        Number of bins, evenly spaced (in log x for `log_x`).
    density
        Exact densities: a mapping from label to a function of x. The bars are then a density too;
        without it they are counts.
    x_domain
        Values outside it are counted in the description but not drawn.

    Returns
    -------
    altair.Chart or altair.LayerChart
    """
    data = np.asarray(values, dtype=float).ravel()
    data = data[np.isfinite(data)]
    if len(data) == 0:
        raise ValueError("values: no finite number to draw")
    low, high = (float(data.min()), float(data.max())) if x_domain is None else map(float, x_domain)
    if log_x and low <= 0:
        raise ValueError(f"values: the smallest is {low:g}, and a log axis needs positive values")
    if low == high:
        high = low + 1.0
    edges = np.geomspace(low, high, bins + 1) if log_x else np.linspace(low, high, bins + 1)
    count, edges = np.histogram(data, bins=edges)
    outside = len(data) - int(count.sum())
    bar = count / (len(data) * np.diff(edges)) if density else count
    table = pd.DataFrame(
        {
            "from": _rounded(edges[:-1], 5),
            "to": _rounded(edges[1:], 5),
            "bar": _rounded(bar, 5),
            "base": 0.0,
        }
    )
    y_title = "density" if density else "number of values"
    x = alt.X(
        "from:Q", title=x_title, scale=_scale(log_x, [low, high]), axis=_axis(log_x, [low, high])
    )
    bars = (
        alt.Chart(table)
        .mark_rect(color=HUES["sky"], opacity=0.6)
        .encode(
            x=x,
            x2="to:Q",
            y=alt.Y("bar:Q", title=y_title, scale=alt.Scale(zero=True)),
            y2="base:Q",
            tooltip=[
                alt.Tooltip("from:Q", format=".4~g"),
                alt.Tooltip("to:Q", format=".4~g"),
                alt.Tooltip("bar:Q", title=y_title, format=".4~g"),
            ],
        )
    )
    facts = f"{len(data)} values with mean {_number(float(data.mean()))}"
    if outside:
        facts += f"; {outside} of them lie outside the axis"
    chart: AnyChart = bars
    names: list[str] = []
    if density:
        grid = np.geomspace(low, high, 150) if log_x else np.linspace(low, high, 150)
        frame = pd.concat(
            [
                pd.DataFrame(
                    {
                        "x": _rounded(grid, 5),
                        "y": _rounded(np.asarray(law(grid), dtype=float), 5),
                        "law": str(label),
                    }
                )
                for label, law in density.items()
            ],
            ignore_index=True,
        )
        style = series_style(frame["law"])
        names = style.names
        lines = (
            alt.Chart(frame)
            .mark_line(strokeWidth=2)
            .encode(
                x=alt.X("x:Q", title=x_title),
                y=alt.Y("y:Q", title=y_title),
                color=_colour("law", style),
                strokeDash=_dash("law", style),
            )
        )
        chart = alt.layer(bars, lines)
    text = description or _describe(title, "Histogram", x_title, y_title, names, facts)
    return finish(chart, title, text, height)


def _law_frame(
    laws: Mapping[str, Any], method: str, low: float, high: float, log_x: bool, points: int
) -> pd.DataFrame:
    if not laws:
        raise ValueError("laws={}: at least one law is needed")
    if not low < high or (log_x and low <= 0):
        raise ValueError(
            f"low={low:g}, high={high:g}: low must be below high, positive on a log axis"
        )
    grid = np.geomspace(low, high, points) if log_x else np.linspace(low, high, points)
    frames = []
    for label, law in laws.items():
        function = getattr(law, method, None) or law
        frames.append(
            pd.DataFrame(
                {
                    "x": _rounded(grid, 5),
                    "y": _rounded(np.asarray(function(grid), dtype=float), 5),
                    "law": str(label),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _law_chart(
    table: pd.DataFrame,
    title: str,
    x_title: str,
    y_title: str,
    log_x: bool,
    log_y: bool,
    description: str | None,
    height: int,
    stepped: bool = False,
) -> AnyChart:
    style = series_style(table["law"])
    chart = (
        alt.Chart(table)
        .mark_line(strokeWidth=2, interpolate="step-after" if stepped else "linear")
        .encode(
            x=alt.X("x:Q", title=x_title, scale=_scale(log_x), axis=_axis(log_x, table["x"])),
            y=alt.Y(
                "y:Q", title=y_title, scale=_scale(log_y, zero=True), axis=_axis(log_y, table["y"])
            ),
            color=_colour("law", style),
            strokeDash=_dash("law", style),
            tooltip=[
                alt.Tooltip("law:N"),
                alt.Tooltip("x:Q", title=x_title, format=".4~g"),
                alt.Tooltip("y:Q", title=y_title, format=".4~g"),
            ],
        )
    )
    facts = "; ".join(
        f"{label} is at {_number(part['y'].iloc[-1])} for x = {_number(part['x'].iloc[-1])}"
        for label, part in table.groupby("law", sort=False)
    )
    text = description or _describe(title, "Lines", x_title, y_title, style.names, facts)
    return finish(chart, title, text, height)


def survival_chart(
    laws: Mapping[str, Any],
    *,
    title: str,
    low: float,
    high: float,
    x_title: str = "x (seconds)",
    y_title: str = "P[S > x]",
    log_x: bool = True,
    log_y: bool = True,
    smallest: float = 1e-9,
    points: int = 150,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw P[S > x] of one or more laws between `low` and `high`.

    Parameters
    ----------
    laws
        A mapping from label to a `Distribution` (its ``tail`` is read) or to a function of x.
    title
        What the chart found.
    low, high
        The range of x.
    smallest
        On a log axis, probabilities below it are not drawn.

    Returns
    -------
    altair.Chart
    """
    table = _law_frame(laws, "tail", low, high, log_x, points)
    if log_y:
        table = table[table["y"] >= smallest]
    return _law_chart(table, title, x_title, y_title, log_x, log_y, description, height)


def density_chart(
    laws: Mapping[str, Any],
    *,
    title: str,
    low: float,
    high: float,
    x_title: str = "x (seconds)",
    y_title: str = "density (1/second)",
    log_x: bool = False,
    points: int = 200,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw the densities of one or more laws between `low` and `high`.

    Parameters
    ----------
    laws
        A mapping from label to a `Distribution` (its ``density`` is read) or to a function of x.
    title
        What the chart found.
    low, high
        The range of x.

    Returns
    -------
    altair.Chart
    """
    table = _law_frame(laws, "density", low, high, log_x, points)
    return _law_chart(table, title, x_title, y_title, log_x, False, description, height)


# --------------------------------------------------------------------------------------------------
# Sliders that work in a static page
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slider:
    """A number that the reader sets in the page.

    Parameters
    ----------
    name
        The word by which formulas refer to it, as in ``"load / (1 - load)"``.
    label
        What the reader sees beside the slider.
    low, high, step
        Its range.
    value
        Where it stands when the page opens.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"name={self.name!r}: one word of letters, digits and underscores")
        if not (self.low < self.high and 0 < self.step <= self.high - self.low):
            raise ValueError(
                f"low={self.low:g}, high={self.high:g}, step={self.step:g}: a range with at least "
                "one step is needed"
            )
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"value={self.value:g}: {self.name} lies between {self.low:g} and {self.high:g}"
            )

    def parameter(self) -> alt.Parameter:
        """Make the Altair parameter that Vega draws as a labelled slider under the chart."""
        return alt.param(
            name=self.name,
            value=self.value,
            bind=alt.binding_range(min=self.low, max=self.high, step=self.step, name=self.label),
        )


def formula_chart(
    formulas: Mapping[str, str],
    sliders: Sequence[Slider],
    *,
    title: str,
    x: Slider,
    x_title: str,
    y_title: str,
    y_domain: Sequence[float],
    log_y: bool = False,
    points: int = 200,
    description: str | None = None,
    height: int = _HEIGHT,
) -> AnyChart:
    """Draw closed formulas against x; the page itself evaluates them as the sliders move.

    A mark on each curve follows the slider of x, and the line under the title reads the values out.

    Parameters
    ----------
    formulas
        A mapping from label to a Vega expression in ``datum.NAME`` for the x slider's name and in
        the plain names of the other sliders, such as ``"(1 + scv) / 2 * datum.load / (1 -
        datum.load)"``.
    sliders
        The other sliders.
    title
        What the chart found, true at the sliders' first values.
    x
        The slider that moves along the horizontal axis, which spans its range.
    x_title, y_title
        Axis titles, with their units.
    y_domain
        Range of the vertical axis; fixed, so that the eye can compare. Curves leave it at the top.

    Returns
    -------
    altair.LayerChart
    """
    if not formulas:
        raise ValueError("formulas={}: at least one formula is needed")
    style = series_style(formulas)
    step = (x.high - x.low) / (points - 1)
    # The last point must not be lost to rounding.
    source = alt.sequence(x.low, x.high + step / 2, step, as_=x.name)
    fields = [f"value_{i}" for i in range(len(formulas))]
    names = dict(zip(fields, formulas, strict=True))
    label_of = (
        "{" + ", ".join(f"{f}: {_quoted(label)}" for f, label in names.items()) + "}[datum.key]"
    )
    y = alt.Y("value:Q", title=y_title, scale=_scale(log_y, y_domain), axis=_axis(log_y, y_domain))
    x_scale = alt.Scale(domain=[x.low, x.high], nice=False, zero=False)
    x_channel = alt.X(f"{x.name}:Q", title=x_title, scale=x_scale, axis=_axis(False))

    def long(chart: alt.Chart) -> alt.Chart:
        for field, expression in zip(fields, formulas.values(), strict=True):
            chart = chart.transform_calculate(**{field: expression})
        return chart.transform_fold(fields, as_=["key", "value"]).transform_calculate(
            formula=label_of
        )

    curves = (
        long(alt.Chart(source))
        .transform_filter(f"datum.value <= {float(y_domain[1])!r}")
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x_channel,
            y=y,
            color=_colour("formula", style, filled=True),
            strokeDash=_dash("formula", style, filled=True),
        )
    )
    at_slider = alt.Chart(alt.sequence(0, 0.5, 1, as_="only")).transform_calculate(
        **{x.name: x.name}
    )
    mark = (
        long(at_slider)
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x=x_channel,
            y=y,
            color=_colour("formula", style, filled=True),
            shape=_shape("formula", style),
        )
    )
    # The heading ends in the values at the sliders, so that a number can be read without a pointer.
    heading_lines = [_quoted(line) for line in _lines(title)]
    heading_lines.append(f"{_quoted('Now, at ' + x.label + ' ')} + format({x.name}, '.3~g') + ':'")
    for label, expression in formulas.items():
        here = expression.replace(f"datum.{x.name}", x.name)
        heading_lines.append(f"{_quoted(label + ': ')} + format({here}, '.4~g')")
    heading = alt.TitleParams(
        text=alt.ExprRef("[" + ", ".join(heading_lines) + "]"), anchor="start", frame="bounds"
    )
    text = description or _describe(
        title,
        "Lines with sliders",
        x_title,
        y_title,
        style.names,
        "Sliders: " + ", ".join(slider.label for slider in [x, *sliders]),
    )
    parameters = [slider.parameter() for slider in [x, *sliders]]
    return (
        alt.layer(curves, mark)
        .add_params(*parameters)
        .properties(title=heading, description=text, width="container", height=height)
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def with_slider(
    chart: AnyChart,
    column: str,
    values: Sequence[float] | Sequence[str],
    *,
    label: str,
    value: float | str | None = None,
) -> AnyChart:
    """Let the reader move through a grid that was computed beforehand.

    Every layer whose data has `column` shows only the rows at the slider's value. Evenly spaced
    numbers get a slider; uneven ones and words get a menu. Fix the axes of `chart` (``y_domain``),
    or they jump.

    Parameters
    ----------
    chart
        A chart of this module whose data holds the whole grid.
    column
        The column to filter by; one word.
    values
        The grid.
    label
        What the reader sees beside the slider.
    value
        Where it stands when the page opens: the first of `values` where it is left out.

    Returns
    -------
    altair.Chart or altair.LayerChart
    """
    grid: list[Any] = list(values)
    if len(grid) < 2:
        raise ValueError(f"values={grid!r}: a slider needs at least two values")
    start: Any = grid[0] if value is None else value
    if start not in grid:
        raise ValueError(f"value={start!r}: one of {grid}")
    name = f"chosen_{column}"
    if not name.isidentifier():
        raise ValueError(f"column={column!r}: one word of letters, digits and underscores")
    numbers = all(isinstance(v, (int, float, np.integer, np.floating)) for v in grid)
    spacing = np.diff(np.asarray(grid, dtype=float)) if numbers else np.array([])
    if numbers and np.all(spacing > 0) and np.allclose(spacing, spacing[0]):
        step = float(_rounded(spacing[0], 6))
        bind: Any = alt.binding_range(
            min=float(grid[0]), max=float(grid[-1]), step=step, name=label
        )
        # A slider counts in steps and so misses 0.3 by a rounding error: the nearest row is meant.
        keep = f"abs(datum['{column}'] - {name}) < {step / 2!r}"
        parameter = alt.param(name=name, value=float(start), bind=bind)
    else:
        bind = alt.binding_select(options=grid, labels=[str(v) for v in grid], name=label)
        keep = f"datum['{column}'] == {name}"
        parameter = alt.param(name=name, value=start, bind=bind)
    filtered, found = _filter_layers(chart.copy(deep=True), column, keep)
    if not found:
        raise ValueError(f"column={column!r}: no layer of the chart has it")
    return filtered.add_params(parameter)


def _has_column(data: Any, column: str) -> bool:
    return isinstance(data, pd.DataFrame) and column in data.columns


def _filter_layers(chart: Any, column: str, keep: str) -> tuple[Any, bool]:
    if isinstance(chart, alt.LayerChart):
        shared = _has_column(chart.data, column)
        found = shared
        layers = []
        for layer in chart.layer:
            inherits = layer.data is alt.Undefined
            if (shared and inherits) or _has_column(layer.data, column):
                layer = layer.transform_filter(keep)
                found = True
            layers.append(layer)
        chart.layer = layers
        return chart, found
    if _has_column(chart.data, column):
        return chart.transform_filter(keep), True
    return chart, False


# --------------------------------------------------------------------------------------------------
# Still pictures
# --------------------------------------------------------------------------------------------------

_STILL_CONFIG: dict[str, Any] = {
    "background": None,
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": NEUTRAL,
        "gridOpacity": 0.25,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "labelOverlap": True,
    },
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12},
    "title": {"color": "currentColor", "subtitleColor": "currentColor", "fontSize": 14},
    "text": {"color": "currentColor"},
    "view": {"stroke": None},
}


def to_svg(chart: AnyChart, width: int = 480) -> str:
    """Render a chart as one ``<svg>`` element that needs no script and no network.

    Its text takes the colour of the page around it, and it fits itself to the page's width. Sliders
    and tooltips do not move in it.

    Parameters
    ----------
    chart
        A chart of this module.
    width
        Width in pixels of the plot, axes apart.

    Returns
    -------
    str
        An ``<svg>`` element with the chart's description as its label.
    """
    import vl_convert

    specification = chart.properties(width=width).to_dict()
    specification["config"] = {**specification.get("config", {}), **_STILL_CONFIG}
    svg = vl_convert.vegalite_to_svg(specification)
    # Two charts on one page must not share the names of their clipping paths, and the same chart
    # must give the same text twice; the renderer merely counts.
    mark = hashlib.sha256(json.dumps(specification, sort_keys=True).encode()).hexdigest()[:8]
    named = list(dict.fromkeys(re.findall(r'id="((?:clip|gradient)[^"]*)"', svg)))
    for place, name in enumerate(named):
        svg = svg.replace(f'id="{name}"', f'id="{mark}-{place}"')
        svg = svg.replace(f"url(#{name})", f"url(#{mark}-{place})")
    label = html.escape(str(specification.get("description", "")), quote=True)
    head = f'<svg role="img" aria-label="{label}" style="width:100%;max-width:42rem;height:auto" '
    return svg.replace("<svg ", head, 1)


def save_svg(chart: AnyChart, path: str | Path, width: int = 480) -> None:
    """Write a chart to an SVG file; see `to_svg`."""
    Path(path).write_text(to_svg(chart, width), encoding="utf-8")


def still_pictures() -> None:
    """Show charts in this notebook as still pictures, which need no network.

    Altair's own way loads its drawing library from the web. The words that stand in for a picture
    where none can be shown are its description.
    """
    alt.renderers.register("whonext-still", _still_bundle)
    alt.renderers.enable("whonext-still")


def _still_bundle(specification: dict[str, Any], **_: Any) -> dict[str, str]:
    chart = alt.Chart.from_dict(specification)
    return {
        "text/html": to_svg(chart),
        "text/plain": str(specification.get("description", "a chart")),
    }
