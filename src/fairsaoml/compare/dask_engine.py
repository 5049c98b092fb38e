"""Runs on a Dask cluster, for more of them than one machine can do.

The workers write into the same folders: a shared file system is assumed, with the data home and
the folders under the same paths. The scheduler hands the job of a lost worker to another one, which
continues the run. Give workers one thread each (`dask worker --nthreads 1`).
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from fairsaoml.compare.engine import Job, run_job, too_many_losses
from fairsaoml.core.errors import ConfigError, FairSAOMLError, RunError
from fairsaoml.runs.events import Event, OnEvent
from fairsaoml.runs.runner import Interrupted
from fairsaoml.streams.catalog import is_table
from fairsaoml.streams.datasets.home import HOME_VARIABLE, data_home

CONNECT_SECONDS = 30
STOP_SECONDS = 120  # for a worker to finish its round, or to stop compiling one
ENDED = "ended"  # the event of a job whose result is there
STOPPED = "stopped"  # the last event of a job that was told to stop


def run_on_cluster(jobs: Mapping[int, Job], address: str, on_event: OnEvent) -> None:
    """Run jobs by number on the cluster at an address; called by `run_all`."""
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError(
            "expected distributed to be installed; pip install 'fairsaoml[dask]'"
        ) from None
    for job in jobs.values():
        stream = job.spec.stream
        if is_table(stream) and not Path(stream).is_absolute():
            raise ConfigError(
                f"expected a path that every worker can read, got {stream!r}; "
                "give the table's absolute path"
            )
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(f"expected a Dask scheduler at {address}, got {error}") from None
    with client:
        _run(client, jobs, on_event)


def _run(client: Any, jobs: Mapping[int, Job], on_event: OnEvent) -> None:
    topic = f"fairsaoml-{uuid4().hex}"
    messages: SimpleQueue[Event] = SimpleQueue()
    # `log_event` carries plain data only, so an event travels as a list.
    client.subscribe_topic(topic, lambda stamped: messages.put(Event(*stamped[1])))
    futures = {
        number: client.submit(
            _run_on_worker,
            job._replace(folder=job.folder.resolve()),
            number,
            topic,
            str(data_home().absolute()),
            key=f"{topic}-{number}",
            pure=False,
            priority=-number,  # in their order, as far as workers are free
        )
        for number, job in jobs.items()
    }
    for number, future in futures.items():
        future.add_done_callback(lambda _, number=number: messages.put(Event(ENDED, number)))
    started: set[int] = set()
    ended: set[int] = set()
    try:
        while len(ended) < len(futures):
            message = messages.get()
            if message.kind == ENDED:
                _check(futures[message.job], jobs[message.job])
                ended.add(message.job)
                on_event(Event("finished", message.job))
            elif message.job not in ended:
                if message.kind == "started" and message.job in started:
                    on_event(message._replace(kind="lost"))
                started.add(message.job)
                on_event(message)
    except BaseException:
        client.cancel(list(futures.values()))
        running = started - ended
        with suppress(Empty):
            while running:  # so that no worker writes any more when the same command is given
                message = messages.get(timeout=STOP_SECONDS)
                if message.kind == STOPPED:
                    running.discard(message.job)
        raise
    finally:
        client.unsubscribe_topic(topic)


def _check(future: Any, job: Job) -> None:
    """Raise the error of an ended job, if it has one."""
    from distributed.scheduler import KilledWorker

    if future.status == "cancelled":
        raise RunError(f"the cluster cancelled the run in {job.folder}; the same call continues it")
    error = future.exception()
    if isinstance(error, KilledWorker):
        raise too_many_losses(job) from None
    if isinstance(error, FairSAOMLError):
        raise error
    if error is not None:
        raise RunError(f"the run in {job.folder} failed: {error!r}") from error


def _run_on_worker(job: Job, number: int, topic: str, home: str) -> None:
    """Run a job on a worker of the cluster."""
    from distributed import get_worker

    os.environ[HOME_VARIABLE] = home
    worker = get_worker()
    key = worker.get_current_task()

    def send(event: Event) -> None:
        # Cancelled, or the client is gone: Dask then no longer waits for the task, and would let
        # it go on writing beside the worker that runs it next.
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Interrupted("stopped")
        if event.kind != "finished":  # the future says so
            worker.log_event(topic, list(event))

    try:
        run_job(job, number, send)
    except Interrupted:
        worker.log_event(topic, list(Event(STOPPED, number)))
        raise
