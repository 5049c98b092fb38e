"""Many runs at once: in processes of this machine, or on the workers of a Dask cluster.

A job is a spec and a folder, run by `runs.runner` and by nothing else; an engine only chooses
where. So a run's files do not depend on the engine, and the same call continues what was stopped.
"""

import multiprocessing
import os
import traceback
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.core.errors import ConfigError, FairSAOMLError, RunError, closest
from fairsaoml.runs.events import Event, OnEvent, as_events
from fairsaoml.runs.folder import SPEC, is_finished, prepared
from fairsaoml.runs.runner import Interrupted, resume, run
from fairsaoml.runs.saved import load_spec
from fairsaoml.runs.spec import RunSpec, Setup

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
    if len({job.folder.resolve() for job in jobs}) < len(jobs):
        raise ConfigError("expected a folder of its own for each run, got one folder twice")
    if force:
        for job in jobs:
            Setup.of(job.spec)  # raises before anything is removed
        for job in jobs:
            with prepared(job.folder, force=True):
                pass  # emptied
    waiting = {}
    for number, job in enumerate(jobs):
        finished = is_finished(job.folder)
        if finished or (job.folder / SPEC).exists():
            require_same(load_spec(job.folder), job.spec, job.folder)
        if finished:
            on_event(Event("kept", number))
        else:
            waiting[number] = job
    try:
        if engine == "dask":
            from fairsaoml.compare.dask_engine import run_on_cluster

            run_on_cluster(waiting, str(address), on_event)
        elif workers == 1 or len(waiting) < 2:
            for number, job in waiting.items():
                run_job(job, number, on_event)
        else:
            run_in_processes(waiting, min(workers, len(waiting)), on_event)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("stopped; the same command continues") from None


def run_job(job: Job, number: int, on_event: OnEvent) -> None:
    """Run one job in this process: from the start, or from its last checkpoint."""
    process = os.getpid()
    on_event(Event("started", number, process))
    on_round = as_events(on_event, number, process)
    if (job.folder / SPEC).exists():
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


def require_same(saved: Any, spec: Any, folder: Path) -> None:
    """Raise RunError if a folder holds the run of another spec."""
    if saved != spec:
        raise RunError(
            f"{folder} holds another run; replace it with --force, or give another --out"
        )


def run_in_processes(jobs: Mapping[int, Job], workers: int, on_event: OnEvent) -> None:
    """Run jobs by number in their order, `workers` at a time; called by `run_all`."""
    queue, losses = deque(jobs), Counter[int]()
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    try:
        while queue or running:
            while queue and len(running) < workers:
                number = queue.popleft()
                connection, process = _start(jobs[number], number)
                running[connection] = number, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                number, process = running[ready]
                try:
                    message = ready.recv()
                except (EOFError, OSError):  # killed, by whomever
                    losses[number] += 1
                    if losses[number] >= LOSSES:
                        raise too_many_losses(jobs[number]) from None
                    queue.appendleft(number)
                    message = Event("lost", number)
                if isinstance(message, FairSAOMLError):
                    raise message
                if message.kind in ("finished", "lost"):
                    del running[ready]
                    ready.close()
                    process.join()
                on_event(message)
    finally:
        for connection in running:  # each stops after its round; Ctrl-C once more stops at once
            connection.close()
        try:
            for _, process in running.values():
                process.join()
        except KeyboardInterrupt:
            for _, process in running.values():
                process.kill()


def _start(job: Job, number: int) -> tuple[Connection, BaseProcess]:
    """Start a process that runs a job; spawned, as a fork of several threads may hang."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (theirs, job, number)
    process = context.Process(target=_work, args=arguments, name="fairsaoml worker", daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends when the process does
    return ours, process


def _work(connection: Connection, job: Job, number: int) -> None:
    """Run a job and report its events, until the other end is closed."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent process, which then closes the pipe

    def send(event: Event) -> None:
        if connection.poll():  # nothing is ever sent here: what can be read is the pipe's end
            raise Interrupted("stopped")
        connection.send(event)

    try:
        run_job(job, number, send)
    except (Interrupted, BrokenPipeError):
        return
    except FairSAOMLError as error:
        connection.send(error)
    except Exception as error:
        details = "".join(traceback.format_exception(error)).strip()
        connection.send(RunError(f"the run in {job.folder} failed: {details}"))
