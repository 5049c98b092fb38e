"""A package outside the tree brings a learner, a constraint, a model and a stream."""

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import tiny
from fairsaoml import OnlineLearner, Schema, Task, load
from fairsaoml.checks import check_learner
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.fairness import NOTIONS, Among
from fairsaoml.core.models import MODELS
from fairsaoml.core.types import Attribute
from fairsaoml.estimators import river, sklearn
from fairsaoml.learners.registry import LEARNERS
from fairsaoml.streams.catalog import CATALOG, STREAMS

PLUGIN = Path(__file__).parent / "plugin"
REGISTRIES = (LEARNERS, NOTIONS, MODELS, STREAMS)


@pytest.fixture
def plugin(monkeypatch):
    """The package, as if it were installed."""
    monkeypatch.syspath_prepend(PLUGIN)
    for registry in REGISTRIES:
        monkeypatch.delitem(registry.__dict__, "_plugins", raising=False)
    yield
    for registry in REGISTRIES:
        registry.__dict__.pop("_plugins", None)


@pytest.mark.usefixtures("plugin")
def test_its_names_run_through_the_command_line(command, tmp_path):
    words = ["run", "coins", "--learner", "steady", "--seeds", 1, "--out", tmp_path / "run"]
    for setting in ("tasks=6", "rows=60", "model=quadratic", "constraints=young+dp", "step=0.3"):
        words += ["--set", setting]
    said = command(*words)
    assert said.code == 0, said.err
    spec = json.loads((tmp_path / "run" / "spec.json").read_text())
    assert spec["learner"]["name"] == "steady"
    assert [name.split("[")[0] for name in spec["constraints"]] == ["young", "dp"]
    records = tiny.records(tmp_path / "run")
    assert len(records) == 6
    assert all(len(record["dual"]) == 2 for record in records)
    said = command("learners", "steady")
    assert "one of none, dp, eop, eo, young, or several" in " ".join(said.out.split())


@pytest.mark.usefixtures("plugin")
def test_its_constraint_is_named_in_the_verdict_which_cannot_measure_it(command, tmp_path):
    words = ["--learner", tiny.FIRST, "--seeds", 1, "--out", tmp_path / "run", "--quiet", "--json"]
    said = command("run", "coins", *words, "--set", "constraints=young")
    verdict = json.loads(said.out)["verdict"]
    assert verdict["asked"]["unmeasured"] == ["young"]
    assert "young was asked for, which is not measured here" in json.dumps(verdict)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "what young compares is known to its learner alone" in page
    assert "not asked to be fair" not in page


@pytest.mark.usefixtures("plugin")
def test_the_default_learner_says_which_constraints_it_takes(command):
    said = command("run", "coins", "--set", "constraints=young")
    assert said.code == 2
    words = "one of none, dp, eop, eo, or several joined by +; young: only with other learners"
    assert words in " ".join(said.err.split())
    said = command("run", "coins", "--set", "model=quadratic")
    assert "fairsaoml-decoupled has no setting 'model'" in " ".join(said.err.split())


def test_a_registered_constraint_that_compares_rates_is_taken_by_the_default_learner(monkeypatch):
    monkeypatch.setitem(NOTIONS.builtin, "alarms", Among({"fpr": 0}))
    schema = Schema(features=("merit",), attributes=(Attribute("sex", ("f", "m")),))
    random = np.random.default_rng(0)
    sex = random.integers(0, 2, 4000)
    x = (random.normal(size=4000) + sex).astype(np.float32)[:, None]
    task = Task(x=x, y=random.random(4000) < 1 / (1 + np.exp(-2 * x[:, 0])), group=sex[:, None])

    def false_alarms(constraints):
        online = OnlineLearner(schema, settings={"constraints": constraints}).learn(task)
        decided = online.learn(task).decide(x)
        return [decided[(sex == code) & ~task.y].mean() for code in (0, 1)]

    low, high = false_alarms("none")
    assert low / high < 0.5
    low, high = sorted(false_alarms("alarms"))
    assert low / high > 0.8


@pytest.mark.usefixtures("plugin")
def test_its_stream_is_listed_run_and_predicted(command, tmp_path):
    listed = json.loads(command("streams", "--json").out)
    assert [item["name"] for item in listed] == [*CATALOG, "coins"]
    assert listed[-1]["settings"] == ["bend", "tasks", "rows"]
    words = ["--seeds", 1, "--out", tmp_path / "run", "--quiet", "--json", "--set", "tasks=3"]
    for key, value in tiny.SHARED.items():
        words += ["--set", f"{key}={value}"]
    said = command("run", "coins", "--learner", tiny.FIRST, *words)
    assert said.code == 0, said.err
    assert json.loads(said.out)["rounds"] == 3
    (tmp_path / "new.csv").write_text("thumb\n0.5\n-1\n")
    assert len(command("predict", tmp_path / "run", tmp_path / "new.csv").out.splitlines()) == 3


@pytest.mark.usefixtures("plugin")
def test_its_constraint_and_model_serve_a_learner_of_ours():
    schema = Schema(features=("age", "merit"), attributes=(Attribute("sex", ("f", "m")),))
    settings = {"model": "quadratic", "constraints": "young"}
    online = OnlineLearner(schema, "fair-glc", settings)
    assert online.constraints == ("young[sex=m]",)
    x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    task = Task(x=x, y=(x[:, 1] ** 2 > 0.5), group=np.arange(60)[:, None] % 2)
    for _ in range(4):
        online.learn(task)
    assert (online.decide(x) == task.y).mean() > 0.9  # no linear model can


@pytest.mark.usefixtures("plugin")
def test_its_learner_has_its_estimators(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(60, 2))
    for module in (sklearn, river):
        assert module.SteadyClassifier is module.SteadyClassifier  # made once, or pickle would fail
        assert module.SteadyClassifier(step=0.3)._config().step == 0.3
        monkeypatch.delitem(module.__dict__, "SteadyClassifier")
    model = sklearn.SteadyClassifier(model="quadratic", constraints="none", random_state=0)
    model.partial_fit(x, x[:, 1] > 0).save(tmp_path / "model")
    assert type(load(tmp_path / "model")) is sklearn.SteadyClassifier
    monkeypatch.delitem(sklearn.__dict__, "SteadyClassifier")
    with pytest.raises(AttributeError, match="has no attribute 'SteddyClassifier'"):
        _ = sklearn.SteddyClassifier


def installed(monkeypatch, registry, name, value):
    """An entry point, as if a package without a name were installed."""
    point = EntryPoint(name=name, value=value, group=registry.group)
    monkeypatch.setitem(registry.__dict__, "_plugins", {name: point})


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_a_name_of_ours_is_not_another_packages(registry, monkeypatch):
    name = next(iter(registry.builtin))
    installed(monkeypatch, registry, name, "their_package:thing")
    words = f"{name!r} is a {registry.kind} of fairsaoml, and of the package 'their_package:thing'"
    with pytest.raises(ConfigError, match=re.escape(words)):
        registry.get(name)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_an_object_of_another_kind_is_refused_in_words(registry, monkeypatch):
    installed(monkeypatch, registry, "odd", "string:digits")
    words = f"the {registry.kind} 'odd' of the package 'string:digits' must be a.*, got str at"
    with pytest.raises(ConfigError, match=words):
        registry.get("odd")


@pytest.mark.usefixtures("plugin")
def test_its_learner_is_short_and_conforms():
    lines = (PLUGIN / "fairsaoml_plugin" / "learner.py").read_text().splitlines()
    assert len(lines) <= 40
    check_learner("steady", LEARNERS.get("steady"))  # all checks share its compiled programs


def test_without_the_package_its_names_are_unknown(command):
    said = command("run", "synthetic", "--set", "constraints=young")
    assert said.code in (1, 2)
    assert "constraints must be one of none, dp, eop, eo" in said.err
