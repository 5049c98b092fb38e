"""What to run, as data: all that is needed to repeat a run, versions included.

When is a row decided positive? As asked for, by costs, or as chosen from a table's first task. Of
a rare label hardly any probability is above one half, and a run that decides there says yes to
nobody: a label of 30 to 70 % of the first task is decided at 0.5, another at the base rate.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, DataError, RunError, closest, warn
from fairsaoml.core.types import Attribute, Learner, Problem, Schema
from fairsaoml.learners import registry
from fairsaoml.streams.catalog import is_table, open_stream, setting_names
from fairsaoml.streams.stream import Stream

SPEC_SCHEMA = 1
EVEN = (0.3, 0.7)  # shares of positive labels between which one half is a threshold
LARGEST_COST = 1e6
SURE = (0.001, 0.999)  # the thresholds that a learner takes
# Settings that people ask for by name of learners that have none.
NOT_EVERY_LEARNER = {
    "ratio": "cannot be asked for a ratio",
    "aware": "cannot be told the group at decision time",
}


@cache
def versions(*packages: str) -> Mapping[str, str]:
    """The versions of this package and others, and Python's."""
    return {name: version(name) for name in ("fairsaoml", *packages)} | {"python": python_version()}


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A stream, a learner, their settings, and the seeds."""

    stream: str
    learner: str = registry.DEFAULT
    stream_settings: Mapping[str, Any] = field(default_factory=dict)
    learner_settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (0, 1, 2, 3, 4)

    def __post_init__(self) -> None:
        seeds = self.seeds
        if isinstance(seeds, str) or not isinstance(seeds, Sequence) or not seeds:
            raise ConfigError(f"seeds must be a list of numbers, such as (0, 1); got {seeds!r}")

    @property
    def name(self) -> str:
        """The run's name where none is given."""
        return " ".join([self.learner, *pairs(self.learner_settings)])

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        words = ["fairsaoml", "run", self.stream, "--learner", self.learner]
        words += ["--seeds", str(len(self.seeds)), "--seed", str(self.seeds[0])]
        for pair in pairs({**self.stream_settings, **self.learner_settings}):
            words += ["--set", pair]
        return shlex.join(words)

    def to_json(self, setup: "Setup") -> dict[str, Any]:
        """The content of spec.json."""
        learner_settings = dict(self.learner_settings)
        return {
            "schema": SPEC_SCHEMA,
            "name": self.name,
            "command": self.command,
            "learner": {"name": self.learner, "config": setup.config, "settings": learner_settings},
            "stream": stream_to_json(self.stream, self.stream_settings, setup.stream),
            "constraints": [constraint.name for constraint in setup.problem.constraints],
            "seeds": list(self.seeds),
            "versions": versions("jax", "numpy"),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunSpec":
        """The spec that a spec.json was written from."""
        if content.get("schema") != SPEC_SCHEMA:
            raise RunError(
                f"expected a spec of schema {SPEC_SCHEMA}, got {content.get('schema')!r}; "
                "the run was made by another version of fairsaoml"
            )
        return cls(
            stream=content["stream"]["name"],
            learner=content["learner"]["name"],
            stream_settings=content["stream"]["settings"],
            learner_settings=content["learner"]["settings"],
            seeds=tuple(content["seeds"]),
        )


def stream_to_json(name: str, settings: Mapping[str, Any], stream: Stream) -> dict[str, Any]:
    """What spec.json says of the stream."""
    return {
        "name": name,
        "settings": dict(settings),
        "features": list(stream.schema.features),
        "attributes": [
            {"name": name, "levels": list(levels)} for name, levels in stream.schema.attributes
        ],
        "length": stream.length,
        "notes": list(stream.notes),
        "encoder": stream.encoder,
        "path": stream.settings.get("source"),  # of a table: absolute
        "fingerprint": stream.fingerprint,
        "cut": stream.cut,
    }


def stream_without_rows(saved: Mapping[str, Any]) -> Stream:
    """The stream that `stream_to_json` described, as far as the description goes: it has no tasks.

    This is all that scoring new rows needs, wherever the rows of the run are by now.
    """
    attributes = (Attribute(one["name"], tuple(one["levels"])) for one in saved["attributes"])
    return Stream(
        name=saved["name"],
        schema=Schema(features=tuple(saved["features"]), attributes=tuple(attributes)),
        tasks=lambda seed: iter(()),
        length=saved["length"],
        settings=saved["settings"],
        encoder=saved["encoder"],
        notes=tuple(saved["notes"]),
        cut=saved.get("cut"),
    )


def reopened_stream(saved: Mapping[str, Any], folder: Path) -> Stream:
    """The rows of the stream that `stream_to_json` described, encoded as they were then.

    A table that has grown is read as far as it was then.

    Args:
        saved: What spec.json says of the stream.
        folder: The run's, from which a table is found again that was moved together with it.

    Raises:
        DataError: The rows are gone, or not what they were.
    """
    fingerprint = saved.get("fingerprint")
    path = None if saved.get("path") is None else table_path(saved, folder)
    stream = open_stream(
        str(path or saved["name"]),
        saved["settings"],
        encoder=saved["encoder"] if fingerprint else None,
        read=fingerprint and fingerprint.get("rows"),
    )
    if fingerprint is None:
        if saved["encoder"] is not None:
            warn(
                f"the run of {saved['name']} was made before fingerprints were kept: whether its "
                "rows have changed cannot be told"
            )
    elif stream.fingerprint != fingerprint:
        raise DataError(
            f"expected {path or saved['name']} as it was when the run began, got other rows; put "
            "the old rows back, or start a new run (rows that were only added are learned with "
            "`fairsaoml learn`)"
        )
    return stream


def table_path(saved: Mapping[str, Any], folder: Path) -> Path:
    """Where the table of a run is: where it was, or at the same place as seen from the folder.

    Raises:
        DataError: It is at neither.
    """
    if saved.get("path") is None:
        raise DataError(f"expected the run of a table, got one of {saved['name']}; it has no file")
    places = [Path(saved["path"]), folder / (saved.get("relative_path") or saved["path"])]
    for place in places:
        if place.exists():
            return place
    raise DataError(
        f"expected the run's table at {places[0]}, got none; put it back, or start a new run"
    )


def pairs(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as they are typed: key=value.

    >>> pairs({"rows": 50, "model": "logistic", "window": None})
    ['rows=50', 'model=logistic', 'window=none']
    """

    def typed(value: Any) -> str:
        return "none" if value is None else value if isinstance(value, str) else json.dumps(value)

    return [f"{key}={typed(value)}" for key, value in settings.items()]


@lru_cache(maxsize=8)
def _posed(entry: registry.Entry, config: LearnerConfig, schema: Schema) -> tuple[Problem, Learner]:
    """A problem and its learner, the same for the same settings: compiled rounds are shared."""
    return registry.pose(entry, config, schema)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A spec made real: an open stream and a learner for it."""

    stream: Stream
    learner: Learner
    problem: Problem
    config: dict[str, Any]

    @classmethod
    def of(
        cls, spec: RunSpec, stream: Stream | None = None, config: Mapping[str, Any] | None = None
    ) -> "Setup":
        """Build what a spec asks for.

        Args:
            spec: What to run.
            stream: The spec's stream, where it is open already.
            config: All settings of the learner as they were, where the spec is one of a folder.
        """
        stream = stream or open_stream(spec.stream, spec.stream_settings)
        entry = registry.entry(spec.learner)
        settings = dict(spec.learner_settings if config is None else config)
        # A table goes on with later rows: how many rounds it has today must change nothing (D16).
        if "horizon" in entry.settings and not is_table(spec.stream):
            settings.setdefault("horizon", stream.length)
        if stream.base_rate is not None and config is None:
            settings.setdefault("decision", suggested_decision(stream.base_rate))
        made = entry.config.from_dict(settings, saved=config is not None)
        problem, learner = _posed(entry, made, stream.schema)
        return cls(stream=stream, learner=learner, problem=problem, config=made.to_dict())


def split_settings(
    stream: str, learner: str, settings: Mapping[str, Any], *, also: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Which settings are the stream's and which the learner's; neither's is an error.

    `also` names what may have been meant besides: the run's own options.
    """
    streams, learners = setting_names(stream), registry.entry(learner).settings
    for key in settings:
        if key in streams or key in learners:
            continue
        able = [name for name in registry.LEARNERS.builtin if key in registry.entry(name).settings]
        if not able:
            known = [*streams, *learners, *also]
            raise ConfigError(f"unknown setting {key!r}; {closest(key, known)}")
        has_not = NOT_EVERY_LEARNER.get(key, f"has no setting {key!r}")
        is_fair = key == "ratio" and registry.configure(learner).constraints != "none"
        advice = ", or set its tolerance" * is_fair
        raise ConfigError(f"{learner} {has_not}; choose --learner {', '.join(able)}{advice}")
    of_stream = {key: value for key, value in settings.items() if key in streams}
    return of_stream, {key: settings[key] for key in settings if key not in of_stream}


def suggested_decision(base_rate: float) -> str:
    """The decision rule for a label that so many rows of the first task have.

    >>> suggested_decision(0.45), suggested_decision(0.13)
    ('accuracy', 'balanced')
    """
    return "accuracy" if EVEN[0] <= base_rate <= EVEN[1] else "balanced"


def by_costs(false_positive: float | None, false_negative: float | None) -> float:
    """The probability above which a positive decision costs less; a cost not given is 1.

    >>> by_costs(4, None)
    0.8
    """
    costs = [1.0 if cost is None else cost for cost in (false_positive, false_negative)]
    for name, cost in zip(("false-positive", "false-negative"), costs, strict=True):
        if not 0 < cost <= LARGEST_COST:
            raise ConfigError(
                f"--cost-{name} must be above 0 and at most {LARGEST_COST:g}, got {cost:g}; "
                "say how many times worse it is than the other error"
            )
    low, high = SURE
    return min(max(costs[0] / (costs[0] + costs[1]), low), high)


def decision_words(decision: str | float, base_rate: float) -> str:
    """What a run says of its decision rule in its first line.

    >>> decision_words("balanced", 0.13)
    'decides at the base rate; 13 % of the first task are positive (--decision says otherwise)'
    """
    at = {"accuracy": "probability 0.5", "balanced": "the base rate"}
    rule = at[decision] if isinstance(decision, str) else f"probability {decision:.3g}"
    share = f"{100 * base_rate:.0f} % of the first task are positive"
    return f"decides at {rule}; {share} (--decision says otherwise)"
