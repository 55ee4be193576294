"""Charts: valid, small, described, readable on both pages and by every eye."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert

from whonext import charts

LOADS = np.linspace(0.1, 0.9, 9)
PAGES = (charts.LIGHT_PAGE, charts.DARK_PAGE)
VISIONS = ("typical", "protanopia", "deuteranopia", "tritanopia")


def tail_of(rate):
    t = np.geomspace(0.01, 30, 60)
    probability = np.exp(-rate * t)
    return pd.DataFrame({"t": t, "probability": probability, "se": np.sqrt(probability / 1e5)})


def path():
    draw = np.random.default_rng(3)
    arrival = np.cumsum(draw.exponential(1.0, 40))
    departure = np.empty(40)
    free = 0.0
    for i, size in enumerate(draw.exponential(0.9, 40)):
        free = max(free, arrival[i]) + size
        departure[i] = free
    return arrival, departure


def measured():
    mean = 1 / (1 - LOADS)
    return pd.DataFrame({"x": LOADS, "mean": mean, "low": 0.95 * mean, "high": 1.05 * mean})


def every_chart():
    """One of each, with the columns and options that the book uses."""
    arrival, departure = path()
    draw = np.random.default_rng(1)
    by_load = pd.concat(
        [
            measured().rename(columns={"x": "load"}).assign(policy=policy)
            for policy in ("fcfs", "srpt", "wspt")
        ]
    )
    bars = pd.DataFrame(
        {
            "policy": ["fcfs", "wspt"] * 2,
            "group": ["chat", "chat", "batch", "batch"],
            "value": [22.0, 4.0, 25.0, 39.0],
            "low": [21.0, 3.8, 24.0, np.nan],
            "high": [23.0, 4.2, 26.0, np.nan],
        }
    )
    runs = draw.exponential(1, (20, 400))
    error = runs.std(axis=1) / 20
    intervals = pd.DataFrame(
        {
            "run": range(20),
            "mean": runs.mean(axis=1),
            "low": runs.mean(axis=1) - 1.96 * error,
            "high": runs.mean(axis=1) + 1.96 * error,
        }
    )
    laws = {"exponential": lambda x: np.exp(-x), "Pareto": lambda x: np.minimum(1, x**-1.5)}
    slide = charts.Slider
    grid = by_load.assign(servers=1)
    grid = pd.concat([grid, grid.assign(servers=2, mean=grid["mean"] / 2)])
    words = {"title": "A finding in one line"}
    return {
        "tail": charts.tail_chart(
            {"fcfs": tail_of(0.3), "srpt": tail_of(0.5)},
            reference={"theory": lambda t: np.exp(-0.3 * t)},
            **words,
        ),
        "tail on a linear axis": charts.tail_chart({"fcfs": tail_of(0.3)}, log_x=False, **words),
        "mean by load": charts.mean_by_load(by_load, **words),
        "mean by load, log": charts.mean_by_load(by_load, log_y=True, **words),
        "bars": charts.compare_bars(bars, measure_title="mean response time", **words),
        "bars, log": charts.compare_bars(bars, log=True, **words),
        "lines": charts.line_chart(
            by_load,
            x="load",
            y="mean",
            series="policy",
            x_title="load",
            y_title="E[T] (s)",
            log_y=True,
            points=True,
            **words,
        ),
        "line": charts.line_chart(
            by_load[by_load.policy == "fcfs"], x="load", y="mean", x_title="load",
            y_title="E[T] (s)", **words,
        ),
        "theory": charts.theory_vs_simulation(
            measured(), lambda x: 1 / (1 - x), x_title="load", y_title="E[N] (jobs)", **words
        ),
        "no theory": charts.theory_vs_simulation(
            measured(), None, x_title="load", y_title="E[N] (jobs)", log_y=True, **words
        ),
        "running mean": charts.running_mean(
            {f"run {i}": draw.pareto(1.5, 5000) for i in range(3)}, expected=2.0, **words
        ),
        "intervals": charts.interval_chart(
            intervals, true_value=1.0, x_title="mean (seconds)", **words
        ),
        "staircases": charts.arrivals_and_departures(arrival, departure, until=25, **words),
        "job bars": charts.job_bars(arrival, departure, until=25, **words),
        "number": charts.number_in_system(arrival, departure, until=25, **words),
        "histogram": charts.histogram(
            draw.exponential(1, 1000), x_title="size (seconds)",
            density={"exponential": lambda x: np.exp(-x)}, **words,
        ),
        "histogram, log": charts.histogram(
            draw.exponential(1, 1000), x_title="size (seconds)", log_x=True, **words
        ),
        "survival": charts.survival_chart(laws, low=0.1, high=1e3, **words),
        "density": charts.density_chart(laws, low=0.1, high=5, **words),
        "formula": charts.formula_chart(
            {"exponential": "datum.load / (1 - datum.load)",
             "yours": "(1 + scv) / 2 * datum.load / (1 - datum.load)"},
            [slide("scv", "variability", 0, 20, 0.5, 4)],
            x=slide("load", "load", 0.05, 0.95, 0.01, 0.8),
            x_title="load", y_title="mean wait (mean sizes)", y_domain=[0, 40], **words,
        ),
        "slider": charts.with_slider(
            charts.mean_by_load(grid, y_domain=[0, 12], **words), "servers", [1, 2],
            label="servers",
        ),
    }  # fmt: skip


CHARTS = every_chart()


@pytest.fixture(params=CHARTS, ids=lambda name: name)
def chart(request):
    return CHARTS[request.param]


def walk(node, trail=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from walk(value, (*trail, key))
    elif isinstance(node, list):
        for value in node:
            yield from walk(value, trail)
    else:
        yield trail, node


# Colour


@pytest.mark.parametrize("hue", charts.HUES)
@pytest.mark.parametrize("page", PAGES)
def test_every_colour_stands_out_from_both_pages(hue, page):
    assert charts.contrast_ratio(charts.HUES[hue], page) >= 3


@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_colours_differ_to_every_reader(vision):
    for first, second in itertools.combinations(charts.HUES.values(), 2):
        assert charts.colour_distance(first, second, vision) > 8


def test_contrast_and_distance_against_known_values():
    assert charts.contrast_ratio("#000000", "#ffffff") == pytest.approx(21)
    assert charts.contrast_ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert charts.colour_distance("#000000", "#ffffff") == pytest.approx(100, abs=0.1)
    # Red and green of one luminance: far apart to most, near to a reader with deuteranopia.
    assert charts.colour_distance("#d05000", "#708000", "deuteranopia") < 8
    assert charts.colour_distance("#d05000", "#708000") > 15


def test_policies_never_share_colour_and_dash():
    styles = [
        (charts.POLICY_COLOURS[name], tuple(charts.POLICY_DASHES[name]))
        for name in charts.POLICY_COLOURS
    ]
    assert len(set(styles)) == len(styles)


def test_every_registered_policy_has_its_own_colour():
    from whonext.policies import registry

    own = {name for name, rule in registry.items() if rule.__module__.startswith("whonext.")}
    missing = own - set(charts.POLICY_COLOURS)
    assert not missing, f"give {missing} a colour and a dash in whonext.charts._POLICY_STYLE"


def test_a_policy_keeps_its_style_with_options_in_capitals_and_in_company():
    alone = charts.series_style(["sjf"])
    both = charts.series_style(["theory", "SJF:by=prediction", "fcfs"])
    assert both.colours[1] == alone.colours[0] == charts.POLICY_COLOURS["sjf"]
    assert both.colours[0] == charts.NEUTRAL


def test_two_variants_of_one_policy_share_the_colour_and_not_the_dash():
    style = charts.series_style(["sjf", "sjf:by=prediction"])
    assert style.colours[0] == style.colours[1]
    assert style.dashes[0] != style.dashes[1]
    assert style.shapes[0] != style.shapes[1]


def test_names_that_are_no_policies_get_colours_not_in_use():
    style = charts.series_style(["fcfs", "mine", "yours"])
    assert len(set(style.colours)) == 3


def test_more_names_than_colours_still_differ():
    style = charts.series_style([f"class {i}" for i in range(20)])
    drawn = list(zip(style.colours, map(tuple, style.dashes), strict=True))
    assert len(set(drawn)) == 20


# Every chart


def test_is_valid_small_and_as_wide_as_the_page(chart):
    specification = chart.to_dict()
    assert len(json.dumps(specification)) < 50_000
    assert specification["width"] == "container"
    assert "config" not in specification or "background" not in specification["config"]


def test_states_its_finding_and_describes_itself(chart):
    specification = chart.to_dict()
    text = specification["title"]["text"]
    shown = text["expr"] if isinstance(text, dict) else " ".join(text)
    assert "A finding in one line" in shown
    assert specification["description"].startswith("A finding in one line.")
    assert len(specification["description"]) > 60


def test_names_both_axes_with_their_units(chart):
    titles = {}
    for trail, value in walk(chart.to_dict()):
        if trail[-1:] == ("title",) and trail[-2] in {"x", "y"}:
            titles[trail[-2]] = value
    assert titles.get("x") or titles.get("y")
    assert all(title != "" for title in titles.values())


def test_leaves_the_colour_of_words_to_the_page(chart):
    for trail, _ in walk(chart.to_dict()):
        last = trail[-1] if trail else ""
        assert last not in {"labelColor", "titleColor", "subtitleColor", "domainColor"}
        assert not (last == "color" and "title" in trail)


def test_uses_no_colour_from_outside_the_palette(chart):
    allowed = set(charts.HUES.values())
    for _, value in walk(chart.to_dict()):
        if isinstance(value, str) and value.startswith("#") and len(value) == 7:
            assert value in allowed


def test_draws_something_and_follows_the_text_colour_of_the_page(chart):
    svg = charts.to_svg(chart)
    assert svg.count("<path") > 3
    assert "currentColor" in svg
    assert 'role="img" aria-label="A finding in one line.' in svg
    assert "NaN" not in svg


def test_compiles_without_a_warning(chart, capfd):
    vl_convert.vegalite_to_vega(chart.to_dict(), show_warnings=True)
    told = capfd.readouterr()
    assert "WARN" not in told.out + told.err


def test_a_still_picture_is_the_same_text_twice(chart):
    assert charts.to_svg(chart) == charts.to_svg(chart)


def test_every_chart_function_asks_for_a_title():
    arrival, departure = path()
    with pytest.raises(ValueError, match="title="):
        charts.job_bars(arrival, departure, title=" ")


# Single charts


def test_all_steps_of_both_staircases_are_drawn():
    arrival, departure = [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]
    svg = charts.to_svg(charts.arrivals_and_departures(arrival, departure, title="Two"))
    assert charts.HUES["blue"] in svg
    assert svg.count('aria-roledescription="line mark"') == 2


def test_number_in_system_states_its_time_average():
    chart = charts.number_in_system([0.0, 1.0], [3.0, 4.0], title="Two jobs")
    assert "time average is 1.5 and the largest value 2" in chart.to_dict()["description"]


def test_a_job_cut_off_is_marked_and_counted():
    chart = charts.job_bars([0.0, 1.0], [3.0, np.inf], until=4, title="Cut")
    assert "1 jobs are still inside at 4 seconds" in chart.to_dict()["description"]


def test_compare_bars_reads_results_by_class_and_skips_what_has_no_value():
    def summary(mean):
        interval = None if mean is None else (mean - 1, mean + 1)
        return SimpleNamespace(mean=mean, ci95=interval)

    def result(chat, batch):
        classes = {"chat": summary(chat), "batch": summary(batch)}
        return SimpleNamespace(
            per_class={name: SimpleNamespace(response=s) for name, s in classes.items()}
        )

    chart = charts.compare_bars({"fcfs": result(22, 25), "wspt": result(4, None)}, title="Chat")
    description = chart.to_dict()["description"]
    assert "fcfs, chat: 22 (21 to 23)" in description
    assert "wspt, chat: 4 (3 to 5)" in description
    assert "wspt, batch" not in description


def test_real_results_can_be_drawn():
    from whonext import Workload, simulate

    workload = Workload("exp:1", load=0.5)
    results = [simulate(p, workload, jobs=4000, replications=4) for p in ("fcfs", "sjf")]
    assert "Series: fcfs, sjf" in charts.tail_chart(results, title="Tails").to_dict()["description"]
    charts.compare_bars(results, title="Means", measure="waiting").to_dict()
    charts.compare_bars(results, title="Percentiles", statistic="p90").to_dict()


def test_a_mean_that_begins_at_zero_can_be_drawn_on_a_log_axis():
    chart = charts.running_mean([0.0, 0.0, 3.0, 1.0], title="Late", log_y=True)
    rows = next(iter(chart.to_dict()["datasets"].values()))
    assert [row["jobs"] for row in rows] == [3, 4]


def test_an_interval_that_reaches_below_zero_is_cut_on_a_log_axis():
    points = pd.DataFrame({"x": [1, 2], "mean": [1.0, 2.0], "low": [-1.0, 1], "high": [3.0, 3]})
    chart = charts.theory_vs_simulation(
        points, None, title="Cut", x_title="x", y_title="y (s)", log_y=True
    )
    rows = next(iter(chart.to_dict()["datasets"].values()))
    assert rows[0]["low"] == 0.5


def test_a_slider_over_even_numbers_and_a_menu_over_uneven_ones():
    table = measured().rename(columns={"x": "load"})
    table = pd.concat([table.assign(policy="fcfs", k=k) for k in (0.1, 0.2, 0.3, 1.0)])
    chart = charts.mean_by_load(table, title="Grid", y_domain=[0, 12])
    even = charts.with_slider(chart, "k", [0.1, 0.2, 0.3], label="k", value=0.3).to_dict()
    bind = even["params"][0]["bind"]
    assert bind == {"input": "range", "min": 0.1, "max": 0.3, "step": 0.1, "name": "k"}
    assert even["params"][0]["value"] == 0.3
    uneven = charts.with_slider(chart, "k", [0.1, 0.3, 1.0], label="k").to_dict()
    assert uneven["params"][0]["bind"]["input"] == "select"
    assert all(layer["transform"] for layer in uneven["layer"])


def test_a_formula_reads_out_its_first_value():
    svg = charts.to_svg(CHARTS["formula"])
    assert "exponential: 4<" in svg  # load 0.8
    assert "yours: 10<" in svg


def test_a_notebook_can_show_still_pictures_without_a_network():
    before = alt.renderers.active
    try:
        charts.still_pictures()
        bundle = CHARTS["number"]._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
    finally:
        alt.renderers.enable(before)
    assert data["text/html"].startswith('<svg role="img" aria-label="A finding in one line.')
    assert "<script" not in data["text/html"]
    assert data["text/plain"].startswith("A finding in one line.")


def test_a_picture_can_be_saved(tmp_path):
    charts.save_svg(CHARTS["number"], tmp_path / "number.svg")
    assert (tmp_path / "number.svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: charts.contrast_ratio("red", "#ffffff"), "colour='red'"),
        (lambda: charts.colour_distance("#000000", "#ffffff", "cat"), "vision='cat'"),
        (lambda: charts.tail_chart({}, title="t"), "at least one result"),
        (lambda: charts.tail_chart({"a": pd.DataFrame({"t": [1]})}, title="t"), "probability"),
        (lambda: charts.mean_by_load(pd.DataFrame({"load": []}), title="t"), "policy"),
        (lambda: charts.job_bars([1.0], [0.5], title="t"), "leaves before it arrives"),
        (lambda: charts.job_bars([], [], title="t"), "not empty"),
        (lambda: charts.job_bars(range(5000), range(1, 5001), title="t"), "at most 1500"),
        (lambda: charts.running_mean([1.0], title="t"), "two or more jobs"),
        (lambda: charts.histogram([np.inf], title="t", x_title="x"), "no finite number"),
        (lambda: charts.histogram([-1, 1], title="t", x_title="x", log_x=True), "positive"),
        (lambda: charts.survival_chart({}, title="t", low=1, high=2), "at least one law"),
        (lambda: charts.survival_chart({"a": np.exp}, title="t", low=2, high=1), "low=2, high=1"),
        (lambda: charts.Slider("two words", "l", 0, 1, 0.1, 0.5), "name='two words'"),
        (lambda: charts.Slider("a", "l", 0, 1, 0.1, 2), "value=2"),
        (lambda: charts.Slider("a", "l", 1, 1, 0.1, 1), "at least one step"),
        (lambda: charts.with_slider(CHARTS["tail"], "policy", [1], label="l"), "two values"),
        (lambda: charts.with_slider(CHARTS["tail"], "k", [1, 2], label="l"), "no layer"),
        (lambda: charts.with_slider(CHARTS["tail"], "k", [1, 2], label="l", value=3), "value=3"),
        (lambda: charts.finish(alt.Chart(), "title", ""), "description="),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
