"""Runs in processes of this machine, one for each job."""

import multiprocessing
import os
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from fairsaoml.compare.engine import LOSSES, Job, run_job, too_many_losses
from fairsaoml.core.errors import FairSAOMLError, RunError
from fairsaoml.runs.events import Event, OnEvent
from fairsaoml.runs.runner import Interrupted

__all__ = ["run_in_processes"]


def run_in_processes(
    jobs: Sequence[Job], waiting: Sequence[int], workers: int, on_event: OnEvent
) -> None:
    """Run the waiting jobs in their order, `workers` at a time; called by `run_all`."""
    queue, losses = deque(waiting), Counter[int]()
    team: dict[Connection, tuple[BaseProcess, int]] = {}  # with the number of its job

    def start(number: int) -> None:
        # Spawned, as a fork of several threads may hang.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, jobs[number], number)
        process = context.Process(
            target=_work, args=arguments, name="fairsaoml worker", daemon=True
        )
        process.start()
        theirs.close()  # so that the pipe ends when the process does
        team[ours] = (process, number)

    try:
        while queue or team:
            while queue and len(team) < workers:
                start(queue.popleft())
            for connection in wait(list(team)):
                assert isinstance(connection, Connection)
                process, number = team[connection]
                try:
                    message = connection.recv()
                except (EOFError, OSError):  # killed, by whomever
                    del team[connection]
                    process.join()
                    losses[number] += 1
                    if losses[number] >= LOSSES:
                        raise too_many_losses(jobs[number]) from None
                    on_event(Event("lost", number))
                    queue.appendleft(number)
                    continue
                if isinstance(message, FairSAOMLError):
                    raise message
                on_event(message)
                if message.kind == "finished":
                    del team[connection]
                    process.join()
    finally:
        _dismiss(team)


def _dismiss(team: dict[Connection, tuple[BaseProcess, int]]) -> None:
    """Stop all workers after their current round; Ctrl-C once more stops them at once."""
    for connection in team:
        connection.close()
    try:
        for process, _ in team.values():
            process.join()
    except KeyboardInterrupt:
        for process, _ in team.values():
            process.kill()


def _work(connection: Connection, job: Job, number: int) -> None:
    """Run a job and report its events, until it is done or the other end is closed."""
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
