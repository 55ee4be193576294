"""What a server is told is read and checked in one place; vLLM is not needed for that."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whonext.policies import Priority, parse_policy
from whonext.serving.facts import CONFIG_VARIABLE, Facts, ServedClass, ServingConfig

CLASSES = [{"name": "chat", "weight": 4.0}, {"name": "batch", "weight": 1.0}]
CONFIG = ServingConfig(policy="sjf", classes=CLASSES)


def test_facts_that_are_given_are_used() -> None:
    given_facts = {"class": "batch", "size": 12, "prediction": 7.5, "weight": 2, "cost": 3}
    facts, complaints = CONFIG.read_facts(given_facts, max_tokens=99)
    assert facts == Facts(kind=1, size=12, prediction=7.5, weight=2, cost=3)
    assert complaints == []


@pytest.mark.parametrize("nothing", [None, {}, {"kv_transfer_params": {"a": 1}}, {"size": None}])
def test_stand_ins(nothing: dict | None) -> None:
    facts, _ = CONFIG.read_facts(nothing, max_tokens=99)
    assert facts == Facts(kind=0, size=99, prediction=99, weight=4.0, cost=1.0)


@pytest.mark.parametrize(
    ("cost", "expected"), [("one", 1), ("prompt", 30), ("size", 8), ("prediction", 9)]
)
def test_cost_models(cost: str, expected: float) -> None:
    config = ServingConfig(cost=cost)
    facts, _ = config.read_facts({"size": 8, "prediction": 9}, max_tokens=99, prompt_tokens=30)
    assert facts.cost == expected


BAD = [
    ("size", math.nan),
    ("size", math.inf),
    ("size", 0),
    ("prediction", -1),
    ("prediction", "12"),
    ("prediction", [12]),
    ("weight", True),
    ("cost", 10**400),
    ("class", "nobody"),
    ("class", 3),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_a_bad_fact_is_one_clear_error(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key}=") as caught:
        CONFIG.read_facts({key: value}, max_tokens=99)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("key", "value"), BAD)
def test_inside_the_engine_a_stand_in_takes_its_place(key: str, value: object) -> None:
    facts, complaints = CONFIG.read_facts({key: value}, max_tokens=99, strict=False)
    assert facts == Facts(kind=0, size=99, prediction=99, weight=4.0, cost=1.0)
    assert len(complaints) == 1
    assert complaints[0].startswith(f"{key}=")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(("class", "size", "prediction", "weight")), json_values))
def test_nothing_that_can_be_sent_gets_past(extra_args: dict) -> None:
    facts, _ = CONFIG.read_facts(extra_args, max_tokens=99, strict=False)
    numbers = np.array([facts.size, facts.prediction, facts.weight, facts.cost])
    assert np.isfinite(numbers).all()
    assert (numbers > 0).all()
    assert facts.kind in (0, 1)


def test_settings_survive_the_way_to_another_process() -> None:
    config = ServingConfig(
        policy="wspt:by=prediction",
        classes=[ServedClass("chat", 3.0, 0.5, "exp:2"), ServedClass("batch")],
        cost="prompt",
        events="events.csv",
    )
    again = ServingConfig.from_mapping(json.loads(json.dumps(config.to_mapping())))
    assert again.to_mapping() == config.to_mapping()
    assert again.classes[0].size.mean == 2
    assert ServingConfig.from_engine({"whonext": config.to_mapping()}).policy == config.policy


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    assert ServingConfig.from_engine({}).policy == "fcfs"
    monkeypatch.setenv(CONFIG_VARIABLE, "sjf")
    assert ServingConfig.from_engine({}).policy == "sjf"
    monkeypatch.setenv(CONFIG_VARIABLE, '{"policy": "ljf", "cost": "size"}')
    assert ServingConfig.from_engine({}).cost == "size"
    assert ServingConfig.from_engine({"whonext": "lcfs"}).policy == "lcfs"
    monkeypatch.setenv(CONFIG_VARIABLE, '{"policy": ')
    with pytest.raises(ValueError, match="not JSON"):
        ServingConfig.from_engine({})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"polcy": "fcfs"}, "no setting 'polcy'"),
        ({"cost": "tokens"}, "cost='tokens': one of one, prompt"),
        ({"classes": [{"weight": 1}]}, "has no name"),
        ({"classes": [{"name": "a"}, {"name": "a"}]}, "named once"),
        ({"classes": [{"name": "a", "weight": -1}]}, "weight=-1: a finite number above 0"),
        ({"classes": [{"name": "a", "colour": "red"}]}, "no key 'colour'"),
        ({"classes": [{"name": ""}]}, "needs a name"),
        ({"classes": ["a"]}, "is not a class"),
        ({"classes": "nowhere.toml"}, "nowhere.toml"),
        (17, "a policy's name or an object"),
    ],
)
def test_bad_settings(settings: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServingConfig.from_mapping(settings)


def test_classes_from_a_file(tmp_path) -> None:
    file = tmp_path / "classes.toml"
    file.write_text(
        '[[class]]\nname = "chat"\nshare = 0.7\nsize = "exp:1"\nweight = 5\n'
        '[[class]]\nname = "batch"\nshare = 0.3\nsize = "exp:9"\n'
    )
    config = ServingConfig(policy="c-mu", classes=str(file))
    assert [served.name for served in config.classes] == ["chat", "batch"]
    config.build_policy(servers=4)


def test_a_rule_is_bound_to_the_classes() -> None:
    policy = ServingConfig(policy="priority:order=batch>chat", classes=CLASSES).build_policy(4)
    assert isinstance(policy, Priority)
    with pytest.raises(ValueError, match="no class is called 'x'"):
        ServingConfig(policy="priority:order=x", classes=CLASSES).build_policy(4)
    with pytest.raises(ValueError, match="give each class a weight, a share and a size law"):
        ServingConfig(policy="c-mu", classes=CLASSES).build_policy(4)
    with pytest.raises(ValueError, match="unknown"):
        ServingConfig(policy="nonsense").build_policy(4)
    made = parse_policy("sjf")
    assert ServingConfig(policy=made).build_policy(4) is made


def test_the_rule_may_come_from_a_file(tmp_path) -> None:
    file = tmp_path / "policy"
    file.write_text("ljf\n# why: to see\n")
    assert ServingConfig(policy_file=str(file)).build_policy(1).spec == "ljf"
    with pytest.raises(ValueError, match="policy_file="):
        ServingConfig(policy_file=str(tmp_path / "none")).build_policy(1)
