"""Runs in processes of this machine: a process for each."""

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
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    try:
        while queue or running:
            while queue and len(running) < workers:
                number = queue.popleft()
                connection, process = _start(jobs[number], number)
                running[connection] = number, process
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                number, process = running[connection]
                try:
                    message = connection.recv()
                except (EOFError, OSError):  # killed, by whomever
                    losses[number] += 1
                    if losses[number] >= LOSSES:
                        raise too_many_losses(jobs[number]) from None
                    queue.appendleft(number)
                    message = Event("lost", number)
                if isinstance(message, FairSAOMLError):
                    raise message
                if message.kind in ("finished", "lost"):
                    del running[connection]
                    connection.close()
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
