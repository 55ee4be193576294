"""One small toolkit for every lab: explore a question, bet on an answer, check an exercise.

    explore(function, ...)   labelled controls, a seed, and what the function returns for them
    slider, menu, switch     the controls
    bet(...)                 the reader commits to a guess before the answer shows
    theory_table(rows)       theorem and simulation side by side, at most four digits
    check(name, value)       the assertion that a reader makes pass
    solution(name)           the code that passes it

Every control has a label and works from the keyboard. What is shown is plain HTML: pictures are
still, tables are tables, so nothing is fetched from a network, a notebook opened without a kernel
still shows the first state, and two runs with one seed give the same text.

`ipywidgets` is imported when the first control is made.
"""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from whonext import charts
from whonext.exercises import check, solution

__all__ = [
    "Bet",
    "Explorer",
    "TheoryTable",
    "bet",
    "check",
    "explore",
    "menu",
    "slider",
    "solution",
    "switch",
    "theory_table",
]

_WIDE = "min(100%, 46rem)"
_CELL = "padding:2px 10px;text-align:left;line-height:1.5"
_HOW_TO_RUN = (
    "The controls appear when this notebook runs: start JupyterLab with <code>make lab</code>, "
    "open this notebook, and choose <em>Run</em>, then <em>Run All Cells</em>."
)


# --------------------------------------------------------------------------------------------------
# What a cell shows
# --------------------------------------------------------------------------------------------------


def _parts(answer: Any) -> list[Any]:
    several = answer if isinstance(answer, (list, tuple)) else [answer]
    return [part for part in several if part is not None]


def _is_chart(part: Any) -> bool:
    return hasattr(part, "to_dict") and hasattr(part, "properties")


def _part_html(part: Any) -> str:
    if _is_chart(part):
        return charts.to_svg(part)
    if isinstance(part, pd.DataFrame):
        return TheoryTable(part)._repr_html_()
    return f"<p>{html.escape(str(part))}</p>"


def _part_text(part: Any) -> str:
    if _is_chart(part):
        return str(part.to_dict().get("description", "a chart"))
    if isinstance(part, pd.DataFrame):
        return repr(TheoryTable(part))
    return str(part)


def _bundle(text: str, markup: str, widget: Any) -> dict[str, Any]:
    """Three ways to show one thing; the first that the reader's program knows is shown."""
    return {
        "text/plain": text,
        "text/html": markup,
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": widget.model_id,
        },
    }


# --------------------------------------------------------------------------------------------------
# Controls
# --------------------------------------------------------------------------------------------------


def _look() -> dict[str, Any]:
    return {"style": {"description_width": "14rem"}, "layout": {"width": _WIDE}}


def slider(label: str, *, low: float, high: float, step: float, value: float) -> Any:
    """Make a slider that reports where it comes to rest, not every point on the way.

    Parameters
    ----------
    label
        What the reader sees in front of it, with its unit.
    low, high, step, value
        Whole numbers give a slider of whole numbers.

    Returns
    -------
    ipywidgets.IntSlider or ipywidgets.FloatSlider

    Raises
    ------
    ValueError
        Where `value` lies outside the range.
    """
    import ipywidgets

    if not low <= value <= high:
        raise ValueError(f"value={value:g}: {label} lies between {low:g} and {high:g}")
    options = {"min": low, "max": high, "step": step, "value": value, "description": label}
    options.update(continuous_update=False, **_look())
    if all(isinstance(number, int) for number in (low, high, step, value)):
        return ipywidgets.IntSlider(**options)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return ipywidgets.FloatSlider(**options, readout_format=f".{digits}f")


def menu(label: str, options: Sequence[Any] | Mapping[str, Any], *, value: Any = None) -> Any:
    """Make a menu.

    Parameters
    ----------
    label
        What the reader sees in front of it.
    options
        What it offers, or a mapping from what the reader sees to what the function gets.
    value
        What is chosen first; the first option where it is left out.

    Returns
    -------
    ipywidgets.Dropdown
    """
    import ipywidgets

    offered = list(options.items()) if isinstance(options, Mapping) else list(options)
    values = list(options.values()) if isinstance(options, Mapping) else list(options)
    first = values[0] if value is None else value
    if first not in values:
        raise ValueError(f"value={first!r}: {label} offers {values}")
    return ipywidgets.Dropdown(options=offered, value=first, description=label, **_look())


def switch(label: str, *, value: bool = False) -> Any:
    """Make a box to tick; returns an `ipywidgets.Checkbox`."""
    import ipywidgets

    return ipywidgets.Checkbox(value=value, description=label, indent=False, **_look())


def _shown(control: Any) -> str:
    """Put the value of a control in the words that the reader sees."""
    label = getattr(control, "label", None)
    value = label if isinstance(label, str) else control.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


class Explorer:
    """A question, its controls, and what a function answers; made by `explore`.

    Attributes
    ----------
    controls
        The controls by name; setting ``.value`` on one runs the function again.
    seed, again
        The seed's box and the button that moves it on; None where the function takes no seed.
    answer
        What the function returned last.
    message
        Why there is no answer, where the settings make no sense; None otherwise.
    view
        The widget that holds everything.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        question: str,
        seed: int,
        controls: Mapping[str, Any],
    ) -> None:
        import ipywidgets

        self._function = function
        self.question = question
        self.controls = dict(controls)
        self.answer: Any = None
        self.message: str | None = None
        self.seed: Any = None
        self.again: Any = None
        heading = ipywidgets.HTML(f"<strong>{html.escape(question)}</strong>")
        self._status = ipywidgets.HTML()
        self._output = ipywidgets.HTML(layout={"width": _WIDE})
        rows: list[Any] = [heading, *self.controls.values()]
        if "seed" in inspect.signature(function).parameters:
            self.seed = ipywidgets.BoundedIntText(
                value=seed, min=0, max=2**31 - 1, description="seed",
                style={"description_width": "14rem"}, layout={"width": "22rem"},
            )  # fmt: skip
            self.again = ipywidgets.Button(
                description="Run again with a new seed", layout={"width": "16rem"}
            )
            self.again.on_click(lambda _: self._next_seed())
            row = {"flex_flow": "row wrap", "align_items": "center"}
            rows.append(ipywidgets.Box([self.seed, self.again], layout=row))
        rows += [self._status, self._output]
        self.view = ipywidgets.VBox(rows, layout={"width": "100%"})
        self.refresh()
        for control in self._all_controls():
            control.observe(lambda _: self.refresh(), names="value")

    def _all_controls(self) -> list[Any]:
        return [*self.controls.values(), *([self.seed] if self.seed is not None else [])]

    def _next_seed(self) -> None:
        # Moving the seed's box runs the function, as if the reader had typed the number.
        self.seed.value = self.seed.value + 1

    @property
    def values(self) -> dict[str, Any]:
        """The settings as the function gets them."""
        settings = {name: control.value for name, control in self.controls.items()}
        if self.seed is not None:
            settings["seed"] = self.seed.value
        return settings

    def refresh(self) -> None:
        """Run the function on the settings as they stand, and show what it returns."""
        self._status.value = "<em>Running …</em>"
        try:
            self.answer = self._function(**self.values)
        except ValueError as error:
            # The package says in one line which setting cannot be; the reader moves on from there.
            self.answer, self.message = None, str(error)
            self._output.value = f"<p><strong>No answer:</strong> {html.escape(str(error))}</p>"
        else:
            self.message = None
            self._output.value = "".join(_part_html(part) for part in _parts(self.answer))
        finally:
            self._status.value = ""

    @property
    def settings(self) -> str:
        """The settings in one line of words."""
        words = [f"{c.description}: {_shown(c)}" for c in self._all_controls()]
        return " · ".join(words)

    @property
    def text(self) -> str:
        """Everything as plain text."""
        parts = [self.message] if self.message else [_part_text(p) for p in _parts(self.answer)]
        return "\n\n".join([self.question, self.settings, *parts])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        markup = (
            f"<p><strong>{html.escape(self.question)}</strong></p>"
            f"<p>{html.escape(self.settings)}</p>{self._output.value}<p><em>{_HOW_TO_RUN}</em></p>"
        )
        return _bundle(self.text, markup, self.view)


def explore(
    function: Callable[..., Any], *, question: str, seed: int = 1, **controls: Any
) -> Explorer:
    """Let the reader move the arguments of a function and see what it returns.

    Parameters
    ----------
    function
        Takes one argument for each control and, where it takes one named ``seed``, the seed. It
        returns a chart, a data frame, a line of text, or a list of these. A ValueError from it is
        shown as one line.
    question
        What the reader can find out here.
    seed
        The first seed.
    **controls
        From `slider`, `menu` and `switch`, by the names of the function's arguments.

    Returns
    -------
    Explorer
        Shown by being the last line of a cell.

    Raises
    ------
    ValueError
        Where a control has no argument to set, or an argument no control.

    Examples
    --------
    >>> double = explore(
    ...     lambda load: f"{2 * load:g}",
    ...     question="What is twice the load?",
    ...     load=slider("load", low=0.0, high=1.0, step=0.1, value=0.3),
    ... )
    >>> double.answer
    '0.6'
    >>> double.controls["load"].value = 0.4
    >>> double.answer
    '0.8'
    """
    wanted = inspect.signature(function).parameters
    unknown = [name for name in controls if name not in wanted]
    if unknown:
        raise ValueError(f"controls {unknown}: the function takes {list(wanted)}")
    missing = [
        name
        for name, parameter in wanted.items()
        if name not in controls and name != "seed" and parameter.default is parameter.empty
    ]
    if missing:
        raise ValueError(f"the function's arguments {missing} have no control")
    return Explorer(function, question, seed, controls)


# --------------------------------------------------------------------------------------------------
# Bets
# --------------------------------------------------------------------------------------------------


class Bet:
    """A question with choices; the answer shows when the reader has committed. See `bet`.

    Attributes
    ----------
    choices, place
        The buttons to choose with and the button to commit with.
    revealed
        Whether the answer shows.
    """

    def __init__(self, question: str, choices: Sequence[str], answer: int, because: Any) -> None:
        import ipywidgets

        self.question = question
        self.revealed = False
        self._texts = list(choices)
        self._answer = answer
        self._because = because
        self.choices = ipywidgets.RadioButtons(
            options=self._texts,
            value=None,
            description="Your bet",
            style={"description_width": "5rem"},
            layout={"width": _WIDE},
        )
        self.place = ipywidgets.Button(
            description="Place the bet", disabled=True, layout={"width": "12rem"}
        )
        self._output = ipywidgets.HTML(layout={"width": _WIDE})
        heading = ipywidgets.HTML(f"<strong>{html.escape(question)}</strong>")
        self.view = ipywidgets.VBox([heading, self.choices, self.place, self._output])
        self.choices.observe(self._chosen, names="value")
        self.place.on_click(lambda _: self.reveal())

    def _chosen(self, change: Mapping[str, Any]) -> None:
        self.place.disabled = self.revealed or change["new"] is None

    def _explanation(self) -> list[Any]:
        return _parts(self._because() if callable(self._because) else self._because)

    def reveal(self) -> None:
        """Show the answer; the bet can no longer be changed."""
        if self.choices.value is None or self.revealed:
            return
        self.revealed = True
        self.choices.disabled = True
        self.place.disabled = True
        right = self.choices.value == self._texts[self._answer]
        verdict = "You won." if right else f"It is: {self._texts[self._answer]}"
        self._output.value = f"<p><strong>{html.escape(verdict)}</strong></p>" + "".join(
            _part_html(part) for part in self._explanation()
        )

    @property
    def text(self) -> str:
        """The question and its choices as plain text, without the answer."""
        lines = [
            f"  {letter}) {text}" for letter, text in zip("abcdefgh", self._texts, strict=False)
        ]
        return "\n".join([self.question, *lines])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self._texts)
        because = "".join(_part_html(part) for part in self._explanation())
        markup = (
            f"<p><strong>{html.escape(self.question)}</strong></p>"
            f'<ol type="a">{items}</ol>'
            "<details><summary>Decide first, then open this</summary>"
            f"<p><strong>{html.escape(self._texts[self._answer])}</strong></p>{because}</details>"
        )
        return _bundle(self.text, markup, self.view)


def bet(question: str, choices: Sequence[str], answer: int, *, because: Any) -> Bet:
    """Ask for a guess, and show the answer only after the reader has committed to one.

    Parameters
    ----------
    question
        One that a reader can guess at.
    choices
        Two to eight different answers.
    answer
        The place of the right one, counted from 0.
    because
        Why: text, a chart, a data frame or a list of these, or a function that returns one.

    Returns
    -------
    Bet
        Shown by being the last line of a cell.

    Examples
    --------
    >>> coin = bet("Heads?", ["yes", "no"], 0, because="It has two of them.")
    >>> coin.choices.value = "no"
    >>> coin.place.click()
    >>> coin.revealed
    True
    """
    options = [str(choice) for choice in choices]
    if not 2 <= len(options) <= 8 or len(set(options)) < len(options):
        raise ValueError(f"choices={options}: two to eight different answers are needed")
    if not 0 <= answer < len(options):
        raise ValueError(f"answer={answer}: the place of a choice, from 0 to {len(options) - 1}")
    return Bet(question, options, answer, because)


# --------------------------------------------------------------------------------------------------
# Theory against simulation
# --------------------------------------------------------------------------------------------------


def _four(value: float) -> str:
    """Four digits, without an exponent for what a reader meets in a table."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = 3 if value == 0 else 3 - math.floor(math.log10(abs(value)))
        return f"{round(value, digits):.{max(digits, 0)}f}"
    return f"{value:.3e}"


class TheoryTable(pd.DataFrame):
    """A data frame that shows its words in full and its rows without numbers."""

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            table = self.to_html(index=False, border=0, justify="left")
        # Said cell by cell, since inside a widget no style sheet reaches them.
        table = table.replace("<td>", f'<td style="{_CELL}">').replace(
            "<th>", f'<th scope="col" style="{_CELL}">'
        )
        return f'<div style="overflow-x:auto">{table}</div>'

    def __repr__(self) -> str:
        return self.to_string(index=False, max_colwidth=None)


def theory_table(rows: Iterable[tuple[str, Any, Any]]) -> TheoryTable:
    """Lay theorem and simulation side by side.

    Parameters
    ----------
    rows
        Triples ``(quantity, theory, simulated)``. ``quantity`` is in words with its unit.
        ``theory`` is a number, or text that says why there is none. ``simulated`` is a `Summary`
        or `Estimate` of a `Result`, a number, a pair ``(value, (low, high))``, or text.

    Returns
    -------
    TheoryTable
        A data frame with columns of text: ``quantity``, ``theory``, ``simulation``,
        ``95 % interval``, ``theory inside?``. At most four digits, so that the table is the same
        on every machine. One interval in twenty misses by right.

    Examples
    --------
    >>> theory_table([("mean wait (s)", 4, (4.0712, (3.92, 4.22)))]).iloc[0].tolist()
    ['mean wait (s)', '4.000', '4.071', '3.920 to 4.220', 'yes']
    """
    table = []
    for quantity, theory, simulated in rows:
        value, interval, reason = _estimate(simulated)
        exact = None if isinstance(theory, str) else float(theory)
        bounds = reason or "none"
        inside = "–"
        if interval is not None:
            low, high = interval
            bounds = f"{_four(low)} to {_four(high)}"
            if exact is not None and math.isfinite(exact):
                inside = "yes" if low <= exact <= high else "no"
        table.append(
            {
                "quantity": quantity,
                "theory": theory if exact is None else _finite(exact),
                "simulation": "–" if value is None else _finite(value),
                "95 % interval": bounds,
                "theory inside?": inside,
            }
        )
    return TheoryTable(table)


def _finite(value: float) -> str:
    return _four(value) if math.isfinite(value) else "infinite"


def _estimate(simulated: Any) -> tuple[float | None, tuple[float, float] | None, str | None]:
    """Value, interval and reason of whatever a row of the table holds."""
    if isinstance(simulated, str):
        return None, None, simulated
    if isinstance(simulated, (int, float)):
        return float(simulated), None, None
    if isinstance(simulated, tuple):
        value, interval = simulated
        return value, interval, None
    value = simulated.value if hasattr(simulated, "value") else simulated.mean
    return value, simulated.ci95, simulated.reason
