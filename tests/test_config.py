"""Settings are checked when they are made and survive a journey through JSON."""

import json
from dataclasses import FrozenInstanceError, fields
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsaoml.core import registry as core_registry
from fairsaoml.core.config import IntervalConfig, LearnerConfig
from fairsaoml.core.errors import ConfigError
from fairsaoml.learners import registry
from fairsaoml.learners.fairsaoml import FairSAOMLConfig

CONFIGS = {name: entry.config for name, entry in registry.BUILTIN.items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_setting_has_a_meaning_and_takes_its_own_default(name):
    defaults = CONFIGS[name]()
    for item in fields(defaults):
        assert item.metadata["meaning"]
        assert item.metadata["rule"].holds(getattr(defaults, item.name)), item.name


@pytest.mark.parametrize("name", CONFIGS)
def test_defaults_survive_json(name):
    config = CONFIGS[name]()
    assert CONFIGS[name].from_dict(json.loads(json.dumps(config.to_dict()))) == config


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.sampled_from(["mlp", "logistic"]),
            "hidden": st.lists(st.integers(1, 99), max_size=3),
            "constraints": st.sampled_from(["none", "dp", "eop", "eo", "dp+eo"]),
            "tolerance": st.floats(0, 1),
            "decision": st.sampled_from(["accuracy", "balanced"]) | st.floats(0.01, 0.99),
            "radius": st.none() | st.floats(0.1, 100),
            "horizon": st.none() | st.integers(1, 10**6),
            "base": st.integers(2, 9),
        },
    )
)
def test_settings_survive_json(settings):
    config = IntervalConfig.from_dict(settings)
    assert IntervalConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("tolerance", -0.1),
        ("tolerance", float("nan")),
        ("tolerance", float("inf")),
        ("tolerance", True),
        ("tolerance", "small"),
        ("tolerance", None),
        ("support", 0),
        ("support", 1.5),
        ("support", True),
        ("capacity", 1),
        ("base", 1),
        ("horizon", 0),
        ("hidden", 40),
        ("hidden", [40, 0]),
        ("hidden", [40, True]),
        ("model", "forest"),
        ("constraints", "parity"),
        ("decision", 0),
        ("decision", 1),
        ("decision", "always"),
        ("prior_discount", 1.1),
        ("radius", 0),
    ],
)
def test_a_value_out_of_its_rule_is_an_error_that_says_what_was_expected(setting, value):
    with pytest.raises(ConfigError) as caught:
        FairSAOMLConfig.from_dict({setting: value})
    [rule] = [item.metadata["rule"] for item in fields(FairSAOMLConfig) if item.name == setting]
    assert str(caught.value).startswith(f"{setting} must be {rule.expected}; got ")


def test_an_error_shows_the_value_and_what_to_do():
    with pytest.raises(ConfigError, match=r"tolerance must be .* use 0 for exact parity; got -0.1"):
        LearnerConfig(tolerance=-0.1)


@pytest.mark.parametrize(
    ("typo", "meant"), [("tolerence", "tolerance"), ("constraint", "constraints"), ("bass", "base")]
)
def test_an_unknown_setting_is_an_error_that_says_which_was_meant(typo, meant):
    with pytest.raises(ConfigError, match=f"unknown setting '{typo}'; did you mean '{meant}'"):
        IntervalConfig.from_dict({typo: 1})


def test_an_unknown_setting_like_no_other_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"unknown setting 'zzz'; known: .*tolerance"):
        LearnerConfig.from_dict({"zzz": 1})


def test_a_config_cannot_be_changed_and_takes_no_positions():
    with pytest.raises(FrozenInstanceError):
        LearnerConfig().tolerance = 1.0
    with pytest.raises(TypeError):
        LearnerConfig("mlp")


def test_a_whole_number_is_a_number():
    config = LearnerConfig(tolerance=0)
    assert config == LearnerConfig(tolerance=0.0)
    assert isinstance(config.tolerance, float)


def test_the_defaults_are_those_of_the_decisions():
    # D6, D16, D26; step sizes are a matter of measurement and stand in the docs.
    config = registry.configure("fairsaoml")
    assert config.hidden == (40, 40)
    assert (config.base, config.horizon, config.radius) == (2, None, None)
    assert (config.decision, config.constraints) == ("accuracy", "dp")
    assert registry.DEFAULT == "fairsaoml-decoupled"
    assert registry.configure(registry.DEFAULT).constraints == "eo"
    assert registry.configure(registry.DEFAULT).ratio == 0.9


def test_names_of_other_packages_are_found_looked_for_once_and_loaded_late(monkeypatch):
    looked, loaded = [], []

    class Point(SimpleNamespace):
        def load(self):
            loaded.append(self.name)
            if self.name == "broken":
                raise ImportError("no module 'gone'")
            return 3

    points = [
        Point(name="theirs", value="them:theirs", dist=None),
        Point(name="broken", value="them:broken", dist=SimpleNamespace(name="their-package")),
    ]
    monkeypatch.setattr(core_registry, "entry_points", lambda group: looked.append(group) or points)
    numbers = core_registry.Registry("number", "fairsaoml.numbers", {"one": 1})
    assert numbers.names() == ["one", "theirs", "broken"]
    assert (numbers.get("one"), loaded) == (1, [])
    assert (numbers.get("theirs"), numbers.get("theirs"), loaded) == (3, 3, ["theirs"])
    with pytest.raises(ConfigError, match="the number 'broken' of the package 'their-package'"):
        numbers.get("broken")
    with pytest.raises(ConfigError, match="unknown number 'thiers'; did you mean 'theirs'"):
        numbers.get("thiers")
    assert looked == ["fairsaoml.numbers"]


def test_notions_are_joined_in_any_order_and_unknown_ones_are_refused():
    for constraints in ("none", "dp", "eo+dp", "dp+eop+eo"):
        assert LearnerConfig(constraints=constraints).constraints == constraints
    for constraints in ("dpp", "dp+", "none+dp", "dp+dp", "", 3):
        with pytest.raises(ConfigError, match="constraints must be one of none, dp, eop, eo, or"):
            LearnerConfig(constraints=constraints)
    with pytest.raises(ConfigError, match="model must be one of mlp, logistic; got 'forest'"):
        LearnerConfig(model="forest")
