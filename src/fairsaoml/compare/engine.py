"""Many runs at once: in processes of this machine, or on the workers of a Dask cluster.

A job is a spec and a folder, run by `runs.runner` and by nothing else; an engine only chooses
where. So a run's files do not depend on the engine, and the same call continues what was stopped.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairsaoml.core.errors import ConfigError, RunError, closest
from fairsaoml.runs.events import Event, OnEvent, as_events
from fairsaoml.runs.folder import is_finished, prepared
from fairsaoml.runs.runner import Interrupted, resume, run
from fairsaoml.runs.saved import load_spec
from fairsaoml.runs.spec import RunSpec, Setup

__all__ = ["ENGINES", "Job", "run_all", "run_job"]

ENGINES = ("local", "dask")
LOSSES = 3  # workers a job may cost; a job that ends more of them is itself the cause


class Job(NamedTuple):
    """What to run, and where its files go."""

    spec: RunSpec
    folder: Path


def run_all(
    jobs: Sequence[Job],
    *,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    force: bool = False,
    on_event: OnEvent = lambda event: None,
) -> None:
    """Run every job into its folder; finished runs are kept.

    A worker that is killed costs the rounds since the run's last checkpoint. An error in one job
    and Ctrl-C both end the call; the same call then continues every run.

    Args:
        jobs: what to run; each has a folder of its own.
        engine: "local" uses processes of this machine, or this process for a single worker. "dask"
            uses a cluster whose workers see folders and data under the same paths.
        workers: how many runs at a time, with "local".
        address: of the Dask scheduler, with "dask".
        force: replace what is in the folders.
        on_event: called as the runs go on.

    Raises:
        ConfigError: arguments that do not fit together.
        RunError: a folder with another run, or a job that ended `LOSSES` workers.
        Interrupted: after Ctrl-C.
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
        for job in jobs:
            Setup.of(job.spec)  # raises before anything is removed
        for job in jobs:
            with prepared(job.folder, force=True):
                pass  # emptied
    waiting = []
    for number, job in enumerate(jobs):
        if is_finished(job.folder):
            _require_same(job)
            on_event(Event("kept", number))
        else:
            waiting.append(number)
    try:
        if engine == "dask":
            from fairsaoml.compare.dask_engine import run_on_cluster

            run_on_cluster(jobs, waiting, str(address), on_event)
        elif workers == 1 or len(waiting) < 2:
            for number in waiting:
                run_job(jobs[number], number, on_event)
        else:
            from fairsaoml.compare.local_engine import run_in_processes

            run_in_processes(jobs, waiting, min(workers, len(waiting)), on_event)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("stopped; the same command continues") from None


def run_job(job: Job, number: int, on_event: OnEvent) -> None:
    """Run one job in this process: from the start, or from its last checkpoint."""
    process = os.getpid()
    on_event(Event("started", number, process))
    on_round = as_events(on_event, number, process)
    if (job.folder / "spec.json").exists():
        _require_same(job)
        resume(job.folder, on_round=on_round)
    else:
        run(job.spec, job.folder, on_round=on_round)
    on_event(Event("finished", number, process))


def too_many_losses(job: Job) -> RunError:
    """Return the error for a job that has ended `LOSSES` workers."""
    return RunError(
        f"the run in {job.folder} ended {LOSSES} workers; is the memory full? "
        f"Try it alone: {job.spec.command}"
    )


def _require_same(job: Job) -> None:
    if load_spec(job.folder) != job.spec:
        raise RunError(
            f"{job.folder} holds another run; replace it with --force, or give another --out"
        )
