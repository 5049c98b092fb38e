"""Tuning other libraries' models, as our learners are tuned and with as many trials."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairsaoml.compare.alternatives import catalog
from fairsaoml.compare.alternatives.runs import AlternativeSpec, prequential
from fairsaoml.core.types import Task
from fairsaoml.streams.catalog import open_stream
from paper.tuning.learners import REHEARSAL, Excerpt, first_domain, whole_stream
from paper.tuning.scores import Scores, scores_of
from paper.tuning.search import Trial, choose, tune
from paper.tuning.space import Between, Choice, Space

__all__ = ["SPACES", "tuned"]

SEEDS = (0, 1)  # as many as our learners are tuned with
STUDIES = "tuning.db"  # all studies of a folder

_PENALTY = Between(0.001, 100.0, log=True)
_WINDOW = Choice((4, 8, 16, 32))
_PAST = Choice((None, *_WINDOW.values))
_REDUCTION: Space = {"window": _WINDOW, "eps": Between(0.001, 0.1, log=True), "C": _PENALTY}

# What a careful user of the library would try; every default of the library is within.
SPACES: Mapping[str, Space] = {
    "logistic-refit": {"window": _PAST, "C": _PENALTY},
    "boosted-refit": {"window": _PAST},
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
    """Return the spec with the settings chosen from so many trials; those done before count.

    They are tried on the rounds that our learners are tried on, and chosen by the same rule.

    Args:
        spec: the model and the stream.
        folder: where Optuna keeps the studies.
        trials: how many settings to try.
        on_trial: is called after each new trial.
    """
    default = {**catalog.defaults(spec.alternative), **spec.settings}
    space = SPACES[spec.alternative]
    excerpts = _excerpts(spec)

    def objective(settings: dict[str, Any]) -> Scores:
        chosen = {**spec.settings, **settings}
        return scores_of(
            {excerpt.name: _lines(excerpt, spec.alternative, chosen) for excerpt in excerpts}
        )

    same = (spec.stream_settings, spec.settings, space, default, version("fairsaoml"))
    digest = sha256(repr(same).encode()).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    finished = tune(
        objective,
        space,
        default=default,
        name=f"{spec.alternative} on {spec.stream}, {len(SEEDS)} seeds, {digest}",
        storage=f"sqlite:///{folder / STUDIES}",
        trials=trials,
        on_trial=on_trial,
    )
    best = choose(finished, fair=catalog.CATALOG[spec.alternative].constraints != "none")
    return replace(spec, settings={**spec.settings, **best.settings}, trials=trials)


def _excerpts(spec: AlternativeSpec) -> list[Excerpt]:
    stream = open_stream(spec.stream, spec.stream_settings)
    if spec.stream == REHEARSAL:
        return [whole_stream(stream, SEEDS)]
    return [whole_stream(open_stream(REHEARSAL), SEEDS), first_domain(stream, SEEDS)]


def _lines(excerpt: Excerpt, name: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of an excerpt's rounds; one seed is enough where nothing is random."""

    def tasks(seed: int) -> Iterator[Task]:
        return (arrived[excerpt.seeds.index(seed) % len(arrived)] for arrived in excerpt.rounds)

    seeds = (
        excerpt.seeds
        if excerpt.stream.seeded or catalog.CATALOG[name].random
        else excerpt.seeds[:1]
    )
    results = prequential(replace(excerpt.stream, tasks=tasks), name, settings, seeds)
    return [line for result in results for line in result.records]
