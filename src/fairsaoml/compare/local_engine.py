"""Runs in processes of this machine: each runs many jobs, one after another."""

import multiprocessing
import os
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import jax

from fairsaoml.compare.engine import LOSSES, Job, run_job, too_many_losses
from fairsaoml.core.errors import FairSAOMLError, RunError
from fairsaoml.runs.events import Event, OnEvent
from fairsaoml.runs.runner import Interrupted

__all__ = ["run_in_processes"]


class Worker(NamedTuple):
    """A process and its current job."""

    process: BaseProcess
    number: int


def run_in_processes(
    jobs: Sequence[Job], waiting: Sequence[int], workers: int, on_event: OnEvent
) -> None:
    """Run the waiting jobs in their order, `workers` at a time; called by `run_all`."""
    queue, losses = deque(waiting), Counter[int]()
    team: dict[Connection, Worker] = {}

    def hand_out(connection: Connection, process: BaseProcess) -> None:
        number = queue.popleft()
        team[connection] = Worker(process, number)
        with suppress(OSError):  # a worker killed while it waited: its pipe's end will tell
            connection.send((number, jobs[number]))

    try:
        for _ in range(workers):
            hand_out(*_start())
        while team:
            for connection in wait(list(team)):
                assert isinstance(connection, Connection)
                number = team[connection].number
                try:
                    message = connection.recv()
                except (EOFError, OSError):  # killed, by whomever
                    team.pop(connection).process.join()
                    losses[number] += 1
                    if losses[number] >= LOSSES:
                        raise too_many_losses(jobs[number]) from None
                    on_event(Event("lost", number))
                    queue.appendleft(number)
                    hand_out(*_start())
                    continue
                if isinstance(message, FairSAOMLError):
                    raise message
                on_event(message)
                if message.kind == "finished":
                    process = team.pop(connection).process
                    if queue:
                        hand_out(connection, process)
                    else:
                        connection.close()
                        process.join()
    finally:
        _dismiss(team)


def _start() -> tuple[Connection, BaseProcess]:
    """Start a process that waits for jobs; spawned, as a fork of several threads may hang."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), name="fairsaoml worker", daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends when the process does
    return ours, process


def _dismiss(team: dict[Connection, Worker]) -> None:
    """Stop all workers after their current round; Ctrl-C once more stops them at once."""
    for connection in team:
        connection.close()
    try:
        for worker in team.values():
            worker.process.join()
    except KeyboardInterrupt:
        for worker in team.values():
            worker.process.kill()


def _work(connection: Connection) -> None:
    """Run the jobs that are sent, report their events, until the other end is closed."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent process, which then closes the pipe

    def send(event: Event) -> None:
        # Nothing arrives while a job is running: what can be read then is the pipe's end.
        if connection.poll():
            raise Interrupted("stopped")
        connection.send(event)

    while True:
        try:
            number, job = connection.recv()
        except (EOFError, OSError):
            return
        try:
            run_job(job, number, send)
            jax.clear_caches()  # the next job has programs of its own
        except (Interrupted, BrokenPipeError):
            return
        except FairSAOMLError as error:
            connection.send(error)
        except Exception as error:
            details = "".join(traceback.format_exception(error)).strip()
            connection.send(RunError(f"the run in {job.folder} failed: {details}"))
