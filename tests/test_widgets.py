"""Widgets: they answer when a control moves, and show the same text with and without a kernel."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd
import pytest

from whonext import Workload, charts, exercises, simulate, widgets


def level(load, seed=0):
    if load > 1:
        raise ValueError(f"load={load:g}: a queue is stable only below 1")
    table = pd.DataFrame({"load": [f"{load:g}"], "seed": [seed]})
    points = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, load]})
    chart = charts.finish(
        alt.Chart(points).mark_line().encode(x=alt.X("x:Q"), y=alt.Y("y:Q")),
        title=f"The load is {load:g}",
        description=f"A line that rises to {load:g}",
    )
    return [chart, table, f"the load is {load:g}"]


@pytest.fixture
def explorer():
    return widgets.explore(
        level,
        question="How high?",
        load=widgets.slider("load", low=0.1, high=1.2, step=0.1, value=0.5),
    )


def test_moving_a_control_changes_the_answer_and_what_is_shown(explorer):
    before = explorer._output.value
    explorer.controls["load"].value = 0.9
    assert explorer.answer[2] == "the load is 0.9"
    assert "the load is 0.9" in explorer._output.value
    assert explorer._output.value != before


def test_a_new_seed_runs_the_function_again_and_an_old_one_brings_it_back(explorer):
    first = explorer._output.value
    explorer.again.click()
    assert explorer.seed.value == 2
    assert explorer._output.value != first
    explorer.seed.value = 1
    assert explorer._output.value == first


def test_settings_that_cannot_be_are_answered_in_one_line(explorer):
    explorer.controls["load"].value = 1.2
    assert explorer.message == "load=1.2: a queue is stable only below 1"
    assert "No answer" in explorer._output.value
    assert explorer.answer is None
    explorer.controls["load"].value = 0.2
    assert explorer.message is None
    assert explorer.answer[2] == "the load is 0.2"


def test_other_errors_are_not_hidden():
    def broken(load):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        widgets.explore(
            broken, question="?", load=widgets.slider("load", low=0, high=2, step=1, value=1)
        )


def test_shows_without_a_kernel_what_it_shows_with_one(explorer):
    bundle = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert '<svg role="img" aria-label="A line that rises to 0.5"' in bundle["text/html"]
    assert "the load is 0.5" in bundle["text/html"]
    assert "make lab" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert bundle["text/plain"].splitlines()[0] == "How high?"
    assert "load: 0.5 · seed: 1" in bundle["text/plain"]
    assert "A line that rises to 0.5" in bundle["text/plain"]
    assert "<" not in bundle["text/plain"]


def test_every_control_has_a_label_and_waits_for_the_hand_to_rest():
    controls = [
        widgets.slider("load", low=0.1, high=1.0, step=0.05, value=0.5),
        widgets.slider("servers", low=1, high=8, step=1, value=2),
        widgets.menu("law", {"exponential": "exp:1", "constant": "det:1"}),
        widgets.switch("shared queue"),
    ]
    assert all(control.description for control in controls)
    assert [c.continuous_update for c in controls[:2]] == [False, False]
    assert controls[0].readout_format == ".2f"
    assert isinstance(controls[1].value, int)
    assert controls[2].value == "exp:1"


def test_a_menu_is_written_in_the_words_that_the_reader_sees():
    explorer = widgets.explore(
        lambda law, shared: law,
        question="Which?",
        law=widgets.menu("law", {"exponential": "exp:1", "constant": "det:1"}, value="det:1"),
        shared=widgets.switch("shared queue"),
    )
    assert explorer.settings == "law: constant · shared queue: no"


def test_what_is_shown_is_escaped():
    explorer = widgets.explore(lambda: "<script>1 < 2</script>", question="Is 1 < 2?")
    assert "<script" not in explorer._repr_mimebundle_()["text/html"]


def test_a_bet_shows_its_answer_only_after_commitment():
    bet = widgets.bet("Heads?", ["yes", "no"], 0, because="It has two.")
    assert bet.choices.value is None
    assert bet.place.disabled
    bet.reveal()
    assert not bet.revealed
    bet.choices.value = "no"
    assert not bet.place.disabled
    assert bet._output.value == ""
    bet.place.click()
    assert bet.revealed
    assert bet.choices.disabled
    assert "It is: yes" in bet._output.value
    assert "It has two." in bet._output.value


def test_a_won_bet_says_so_and_its_text_does_not_give_the_answer_away():
    bet = widgets.bet("Heads?", ["yes", "no"], 0, because=lambda: "It has two.")
    assert bet.text == "Heads?\n  a) yes\n  b) no"
    assert "<details>" in bet._repr_mimebundle_()["text/html"]
    bet.choices.value = "yes"
    bet.place.click()
    assert "You won." in bet._output.value


def test_theory_and_simulation_side_by_side():
    run = simulate("fcfs", Workload("exp:1", load=0.5), jobs=40_000, seed=3)
    heavy = simulate("fcfs", Workload("pareto:alpha=1.5", load=0.5), jobs=20_000, seed=3)
    table = widgets.theory_table(
        [
            ("mean response (s)", 2.0, run.response),
            ("number in system (jobs)", 1.0, run.number_in_system),
            ("heavy", math.inf, heavy.response),
            ("wait in M/G/8", "no formula is known", run.waiting),
            ("median (s)", 1.0, (1.02, None)),
            ("nothing", 1.0, "not simulated"),
        ]
    )
    assert table["theory inside?"].tolist()[:2] == ["yes", "yes"]
    assert table["theory"].tolist()[2:4] == ["infinite", "no formula is known"]
    assert table["simulation"].tolist()[2] == "–"
    assert "infinite" in table["95 % interval"].iloc[2]
    assert table["95 % interval"].tolist()[4:] == ["none", "not simulated"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0, "0.000"),
        (0.012345, "0.01235"),
        (5.0, "5.000"),
        (123.456, "123.5"),
        (123456.0, "123500"),
        (1.5e7, "1.500e+07"),
        (-2.5, "-2.500"),
    ],
)
def test_numbers_have_four_digits(number, shown):
    assert widgets._four(number) == shown


# Exercises


@pytest.mark.parametrize("name", exercises.EXERCISES)
def test_each_exercise_can_be_solved_as_its_solution_says(name, capsys):
    scope = {}
    exec(exercises.EXERCISES[name].solution, scope)
    exercises.check(name, scope["answer"])
    assert capsys.readouterr().out.startswith(f"{name}: right. ")


@pytest.mark.parametrize("name", exercises.EXERCISES)
@pytest.mark.parametrize("wrong", [0, -1.0, 1e9, "no idea", math.nan, print])
def test_each_exercise_turns_a_wrong_answer_down_with_a_hint(name, wrong):
    with pytest.raises(AssertionError, match=f"^{name}: ...") as caught:
        exercises.check(name, wrong)
    assert len(str(caught.value)) > len(name) + 15


@pytest.mark.parametrize("blank", [None, ...])
def test_an_exercise_waits_for_its_answer(blank, capsys):
    name = next(iter(exercises.EXERCISES))
    exercises.check(name, blank)
    assert capsys.readouterr().out == f"{name}: waits for your answer\n"


def test_a_solution_is_printed_as_code(capsys):
    name = next(iter(exercises.EXERCISES))
    exercises.solution(name)
    assert "answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: widgets.slider("load", low=0, high=1, step=0.1, value=2), "value=2: load"),
        (lambda: widgets.menu("law", ["a"], value="b"), "value='b': law"),
        (lambda: widgets.explore(lambda a: a, question="?"), "have no control"),
        (
            lambda: widgets.explore(lambda: 1, question="?", b=widgets.switch("b")),
            "the function takes",
        ),
        (lambda: widgets.bet("?", ["a"], 0, because=""), "two to eight"),
        (lambda: widgets.bet("?", ["a", "b"], 2, because=""), "answer=2"),
        (lambda: exercises.check("no such", 1), "name='no such'"),
        (lambda: exercises.solution("no such"), "name='no such'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
