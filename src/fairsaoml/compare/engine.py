"""Many runs, wherever there is room: processes of this machine, or the workers of a Dask cluster.

Every job is a spec and a folder, played by `runs.runner` and by nothing else; an engine only says
where. So a run's files are the same whatever the engine, and what was stopped or killed is gone
on with by the same call.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from fairsaoml.core.errors import ConfigError, RunError, closest
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.runs.runner import Interrupted, is_finished, load_spec, prepare, resume, run
from fairsaoml.runs.spec import RunSpec, Setup

__all__ = ["ENGINES", "Event", "Job", "OnEvent", "play", "run_all"]

ENGINES = ("local", "dask")
SHOWN = ("accuracy", "dp_ratio", "eo_ratio")  # the figures of a round that an event carries
LOSSES = 3  # workers a job may cost; one that ends more of them is itself the trouble


class Job(NamedTuple):
    """What to play, and where its files go."""

    spec: RunSpec
    folder: Path


class Event(NamedTuple):
    """What became of a job: plain data, so that it can travel.

    `kind` is "kept" (it was there already), "started", "round", "finished" or "lost": its worker
    died, and it will be gone on with.
    """

    kind: str
    job: int  # its place among the jobs
    process: int = 0  # that plays it, on whatever machine
    round: int = 0
    length: int | None = None
    domain: str = ""
    figures: Mapping[str, float | None] = {}


OnEvent = Callable[[Event], None]


def run_all(
    jobs: Sequence[Job],
    *,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    force: bool = False,
    on_event: OnEvent = lambda event: None,
) -> None:
    """Play every job into its folder, `workers` at a time; what is finished already is kept.

    `local` uses processes of this machine, or this process itself for a single worker. `dask` uses
    the workers of the cluster at `address` (its scheduler's), which must see the folders and the
    data under the same paths: a shared file system. A worker that is killed costs the rounds since
    the run's last checkpoint. A job that fails ends the call, and Ctrl-C does; both leave every run
    in a state that the same call goes on with. `force` replaces what is in the folders.
    """
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine {engine!r}; {closest(engine, ENGINES)}")
    if (engine == "dask") != (address is not None):
        raise ConfigError(
            "expected --address with --engine dask, and only with it; it is the scheduler's, "
            "such as tcp://10.0.0.1:8786"
        )
    if workers < 1:
        raise ConfigError(f"expected at least one worker, got {workers}")
    folders = [job.folder.resolve() for job in jobs]
    if len(set(folders)) < len(folders):
        raise ConfigError("expected a folder of its own for each run, got one folder twice")
    if force:
        _clear(jobs)
    waiting = []
    for number, job in enumerate(jobs):
        if is_finished(job.folder):
            _same(job)
            on_event(Event("kept", number))
        else:
            waiting.append(number)
    try:
        if engine == "dask":
            from fairsaoml.compare.dask_engine import run_on_cluster

            run_on_cluster(jobs, waiting, str(address), on_event)
        elif workers == 1 or len(waiting) < 2:
            for number in waiting:
                play(jobs[number], number, on_event)
        else:
            from fairsaoml.compare.local_engine import run_in_processes

            run_in_processes(jobs, waiting, min(workers, len(waiting)), on_event)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("stopped; the same command goes on with it") from None


def play(job: Job, number: int, on_event: OnEvent) -> None:
    """Play one job here: from its start, or from where its folder left it."""

    process = os.getpid()

    def on_round(game: Setup, played: RoundResult) -> None:
        on_event(_round(number, process, game, played))

    on_event(Event("started", number, process))
    if (job.folder / "spec.json").exists():
        _same(job)
        resume(job.folder, on_round=on_round)
    else:
        run(job.spec, job.folder, on_round=on_round)
    on_event(Event("finished", number, process))


def give_up(job: Job) -> RunError:
    """The error when a job has ended one worker too many."""
    return RunError(
        f"the run in {job.folder} ended {LOSSES} workers; is the memory full? "
        f"Try it alone: {job.spec.command}"
    )


def _clear(jobs: Sequence[Job]) -> None:
    """Remove the runs in the folders, once it is known that new ones can begin."""
    for job in jobs:
        Setup.of(job.spec)
    for job in jobs:
        prepare(job.folder, force=True)


def _same(job: Job) -> None:
    if load_spec(job.folder) != job.spec:
        raise RunError(
            f"{job.folder} holds another run; replace it by --force, or give another --out"
        )


def _round(number: int, process: int, game: Setup, played: RoundResult) -> Event:
    def mean(name: str) -> float | None:
        known = [record[name] for record in played.records if record[name] is not None]
        return fmean(known) if known else None

    return Event(
        "round",
        number,
        process,
        round=played.round,
        length=game.stream.length,
        domain=played.records[0]["domain"],
        figures={name: mean(name) for name in SHOWN},
    )
