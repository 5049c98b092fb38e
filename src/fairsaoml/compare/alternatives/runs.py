"""Runs of alternatives in folders: planned, run, kept when finished, compared.

Each task is decided with what was learned before it; then its labels are shown.
"""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from threadpoolctl import threadpool_limits

from fairsaoml.compare.alternatives import catalog
from fairsaoml.compare.compare import COMPARISON, command_of, comparison_of
from fairsaoml.compare.engine import require_same
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.types import Schema, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.prequential import rounds_of
from fairsaoml.evaluate.records import RoundResult, line, tally
from fairsaoml.files import read_json, tidy, write_json
from fairsaoml.runs import folder as run_folder
from fairsaoml.runs.events import Event, OnEvent, as_events
from fairsaoml.runs.journal import Journal
from fairsaoml.runs.runner import write_summary
from fairsaoml.runs.spec import RunSpec, pairs, versions
from fairsaoml.streams.catalog import open_stream
from fairsaoml.streams.stream import Stream, checked

# What an alternative is told of each decision that it can be asked for.
DECISIONS: Mapping[str, Mapping[str, Any]] = {"accuracy": {}, "balanced": {"balanced": True}}


@dataclass(frozen=True, kw_only=True)
class AlternativeSpec:
    """A stream, an alternative, what differs from their defaults, and the seeds."""

    stream: str
    alternative: str
    stream_settings: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    trials: int = 0  # that the settings were chosen from; 0: they are the library's

    @property
    def label(self) -> str:
        """The name of its row and folder, with what a reader must not overlook.

        >>> spec = AlternativeSpec(stream="movielens", alternative="sgd", settings={"every": 4})
        >>> spec.label
        'sgd-every-4'
        """
        every = self.settings.get("every", 1)
        name = self.alternative + "-balanced" * self.settings.get("balanced", False)
        return name + f"-every-{every}" * (every > 1) + "-tuned" * (self.trials > 0)

    @property
    def row(self) -> RunSpec:
        """This run as a `RunSpec`, for summaries and comparisons with our learners."""
        return RunSpec(
            stream=self.stream,
            learner=self.label,
            stream_settings=self.stream_settings,
            learner_settings=self.settings,
            seeds=tuple(self.seeds),
        )

    def to_json(self, stream: Stream) -> dict[str, Any]:
        """Return the content of spec.json, laid out as for our learners."""
        listing = catalog.CATALOG[self.alternative]
        config = {
            "what": catalog.words(self.alternative, self.settings, stream.schema),
            "constraints": listing.constraints,
            **listing.settings,
            **self.settings,
            "tuning_trials": self.trials,
        }
        kept_fair = SimpleNamespace(constraints=())  # none of ours is kept by another library
        setup: Any = SimpleNamespace(config=config, stream=stream, problem=kept_fair)
        own = {"name": self.label, "command": command([self])}
        return self.row.to_json(setup) | own | {"versions": versions(listing.package, "numpy")}


def command(specs: Sequence[AlternativeSpec]) -> str:
    """Return the command that repeats these runs."""
    trials = max(spec.trials for spec in specs)
    every = max(spec.settings.get("every", 1) for spec in specs)
    words = ["python", "-m", "paper", "alternatives"] if trials else ["fairsaoml", "peers"]
    words += [specs[0].stream, "--alternatives"]
    words += [",".join(dict.fromkeys(spec.alternative for spec in specs))]
    words += ["--seeds", str(max(len(spec.seeds) for spec in specs))]
    words += ["--refit-every", str(every)] * (every > 1)
    words += ["--decision", "balanced"] * any(spec.settings.get("balanced") for spec in specs)
    words += ["--trials", str(trials)] * (trials > 0)
    return command_of(words, pairs(specs[0].stream_settings))


def plan(
    stream: str,
    names: Sequence[str],
    *,
    stream_settings: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    every: int = 1,
    decision: str = "accuracy",
) -> list[AlternativeSpec]:
    """Return one spec per alternative, with its library's defaults.

    Args:
        stream: a stream's name, or a table's file.
        names: of alternatives, in the catalog.
        stream_settings: what differs from the stream's defaults.
        seeds: an alternative that gives the same result for all gets the first only.
        every: those that are refitted keep each fit for so many rounds.
        decision: "accuracy", or "balanced": both classes weigh the same.

    Raises:
        ConfigError: an unknown name or setting, or a library that is not installed.
    """
    settings = dict(stream_settings or {})
    if every < 1:
        raise ConfigError(f"expected to refit every 1 or more rounds, got {every}")
    if decision not in tuple(DECISIONS):  # which may be a list, too
        raise ConfigError(
            f"decision of other libraries' models must be {' or '.join(DECISIONS)}, got "
            f"{decision!r}; `fairsaoml compare` has learners that take a number, too"
        )
    if len(set(names)) < len(names):
        raise ConfigError(f"expected each alternative once, got {','.join(names)}")
    listings = [catalog.listing(name) for name in names]
    chosen = {**({"every": every} if every > 1 else {}), **DECISIONS[decision]}
    seeded = open_stream(stream, settings).seeded
    return [
        AlternativeSpec(
            stream=stream,
            alternative=name,
            stream_settings=settings,
            settings={key: chosen[key] for key in chosen if key in listing.settings},
            seeds=tuple(seeds if seeded or listing.random else seeds[:1]),
        )
        for name, listing in zip(names, listings, strict=True)
    ]


def run_alternative(
    spec: AlternativeSpec,
    folder: Path,
    *,
    force: bool = False,
    on_event: OnEvent = lambda event: None,
    job: int = 0,
) -> dict[str, Any]:
    """Run one alternative into a folder; a finished run of the same spec is kept.

    A model of another library cannot be saved without pickle: a run that was stopped starts again.

    Args:
        spec: what to run.
        folder: where its files go.
        force: replace what is in the folder.
        on_event: called as the run goes on.
        job: the run's position in these events.

    Returns:
        Its summary.
    """
    stream = open_stream(spec.stream, spec.stream_settings)
    content = spec.to_json(stream)
    if (folder / run_folder.SPEC).exists() and not force:
        saved = run_folder.read_spec(folder)
        require_same(_identity(saved), _identity(content), folder)
        if summary := run_folder.finished_summary(folder):
            on_event(Event("kept", job))
            return summary
    on_event(Event("started", job))
    on_round = as_events(on_event, job)
    with run_folder.prepared(folder, force=True):
        run_folder.write_spec(folder, content)
        with Journal(folder / run_folder.ROUNDS) as journal:
            for result in prequential(stream, spec.alternative, spec.settings, spec.seeds):
                journal.append(result.records)
                on_round(SimpleNamespace(stream=stream), result)
        summary = write_summary(folder, spec.row, stream.best)
    on_event(Event("finished", job))
    return summary


def compare_alternatives(
    specs: Sequence[AlternativeSpec],
    folder: Path,
    *,
    force: bool = False,
    on_event: OnEvent = lambda event: None,
) -> dict[str, Any]:
    """Run alternatives, each into a folder of its own, and write `comparison.json`.

    Args:
        specs: what to run, as `plan` returns it.
        folder: for all of them.
        force: replace what is in the runs' folders.
        on_event: called as the runs go on.

    Returns:
        The content of `comparison.json`: as of our learners, and for each what it is.
    """
    for job, spec in enumerate(specs):
        run_alternative(spec, folder / spec.label, force=force, on_event=on_event, job=job)
    comparison = comparison_of([spec.row for spec in specs], folder)
    for entry in comparison["learners"]:
        saved = run_folder.read_spec(folder / entry["folder"])
        entry["what"] = saved["learner"]["config"]["what"]
    comparison["command"] = command(specs)
    write_json(folder / COMPARISON, comparison)
    return read_json(folder / COMPARISON)


def _identity(spec: Mapping[str, Any]) -> list[Any]:
    """What must agree for two spec.json to be the same run, whichever version wrote them."""
    config = {"balanced": False, **spec["learner"]["config"]}  # once not every one had this
    learner = {key: value for key, value in config.items() if key != "what"}
    stream = [spec["stream"][key] for key in ("name", "settings", "features", "attributes")]
    return tidy([spec["learner"]["name"], learner, stream, spec["seeds"]])


def prequential(
    stream: Stream, name: str, settings: Mapping[str, Any], seeds: Sequence[int]
) -> Iterator[RoundResult]:
    """Run an alternative on a stream, one round at a time, on one thread.

    Args:
        stream: an open stream.
        name: the alternative's, in the catalog.
        settings: what differs from the library's defaults.
        seeds: each is a model of its own.

    Yields:
        The finished rounds, in order; without predictions or state.
    """
    models = [catalog.make(name, stream.schema, seed, settings) for seed in seeds]
    for round, arrived in enumerate(rounds_of(stream, seeds), start=1):
        tasks = [checked(task, stream.schema, round) for task in arrived]
        records = []
        for at, (seed, model) in enumerate(zip(seeds, models, strict=True)):
            task = tasks[at % len(tasks)]  # real rows are one task for all seeds
            figures, seconds = _played(model, task, stream.schema)
            records.append(line(round, seed, task, figures, seconds))
        yield RoundResult(round=round, records=records, predictions=[], state=None)


def _played(model: catalog.Alternative, task: Task, schema: Schema) -> tuple[dict[str, Any], float]:
    """Decide and then learn a task, on one thread.

    Returns:
        What a journal's line says of it, as of our learners, and the seconds that it took.
    """
    decisions: Any = []
    begun = time.perf_counter()
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True, action="always") as said:
        # What a library will have to change in its own code is no news of the round.
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        if len(task.y):
            decisions = model.decide(task.x, task.group)
            model.learn(task)
    seconds = time.perf_counter() - begun
    empty = [] if len(task.y) else [WARNINGS["empty"]]
    raised = dict.fromkeys(str(one.message).splitlines()[0] for one in said)
    figures = {
        **tally(task.y, decisions, task.group, schema),
        "loss": None,
        **{key: [] for key in ("violation", "dual", "weights", "awake")},  # only our learners have
        "chances": None,
        "warnings": [*task.warnings, *empty, *raised],
        "adapted": None,
    }
    return figures, seconds
