"""Peers at their best: settings searched for as those of our learners are, by the same budget."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairsaoml.compare.alternatives import catalog
from fairsaoml.compare.alternatives.prequential import prequential
from fairsaoml.compare.alternatives.runs import AlternativeSpec
from fairsaoml.core.types import Task
from fairsaoml.streams.catalog import open_stream
from paper.tuning.learners import REHEARSAL, Part, beginning, whole
from paper.tuning.scores import Scores, scores_of
from paper.tuning.search import Trial, choose, tune
from paper.tuning.space import Between, Choice, Space

__all__ = ["SPACES", "tuned"]

SEEDS = (0, 1)  # as many as our learners are tuned with
STUDIES = "tuning.db"  # all studies of a folder of peers

_PENALTY = Between(0.001, 100.0, log=True)
_WINDOW = Choice((4, 8, 16, 32))
_REDUCTION: Space = {"window": _WINDOW, "eps": Between(0.001, 0.1, log=True), "C": _PENALTY}

# What a careful user of the library would try; every library default lies within.
SPACES: Mapping[str, Space] = {
    "logistic-refit": {"window": Choice((None, 4, 8, 16, 32)), "C": _PENALTY},
    "sgd": {
        "alpha": Between(1e-6, 0.1, log=True),
        "average": Choice((False, True)),
        "learning_rate": Choice(("optimal", "constant")),
        "eta0": Between(0.001, 1.0, log=True),
    },
    "expgrad": _REDUCTION,
    "expgrad-eo": _REDUCTION,
    "threshold": {"window": _WINDOW, "C": _PENALTY},
    "river-logistic": {
        "learning_rate": Between(0.001, 1.0, log=True),
        "l2": Choice((0.0, 1e-5, 1e-4, 1e-3, 0.01)),
    },
    "river-forest": {
        "n_models": Choice((5, 10, 20)),
        "lambda_value": Choice((1, 3, 6)),
        "grace_period": Choice((20, 50, 100, 200)),
    },
}


def tuned(
    spec: AlternativeSpec,
    folder: Path,
    *,
    trials: int,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> AlternativeSpec:
    """The spec with settings chosen from so many trials; trials made before count.

    Tried on what our learners are tried on, and chosen by the same rule: a peer that knows no
    fairness for its accuracy alone.
    """
    default, space = (
        {**catalog.defaults(spec.alternative), **spec.settings},
        SPACES[spec.alternative],
    )
    parts = _parts(spec)

    def objective(settings: dict[str, Any]) -> Scores:
        chosen = {**spec.settings, **settings}
        return scores_of({part.name: _lines(part, spec.alternative, chosen) for part in parts})

    same = (spec.stream_settings, spec.settings, space, default, version("fairsaoml"))
    digest = sha256(repr(same).encode()).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    done = tune(
        objective,
        space,
        default=default,
        name=f"{spec.alternative} on {spec.stream}, {len(SEEDS)} seeds, {digest}",
        storage=f"sqlite:///{folder / STUDIES}",
        trials=trials,
        on_trial=on_trial,
    )
    best = choose(done, fair=catalog.CATALOG[spec.alternative].constraints != "none")
    return replace(spec, settings={**spec.settings, **best.settings}, trials=trials)


def _parts(spec: AlternativeSpec) -> list[Part]:
    stream = open_stream(spec.stream, spec.stream_settings)
    if spec.stream == REHEARSAL:
        return [whole(stream, SEEDS)]
    return [whole(open_stream(REHEARSAL), SEEDS), beginning(stream, SEEDS)]


def _lines(part: Part, peer: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a part's rounds. A peer that repeats itself on real rows plays them once."""

    def tasks(seed: int) -> Iterator[Task]:
        return (arrived[part.seeds.index(seed) % len(arrived)] for arrived in part.rounds)

    seeds = part.seeds if part.stream.seeded or catalog.CATALOG[peer].random else part.seeds[:1]
    results = prequential(replace(part.stream, tasks=tasks), peer, settings, seeds)
    return [line for result in results for line in result.records]
