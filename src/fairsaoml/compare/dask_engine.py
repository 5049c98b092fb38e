"""Runs on a Dask cluster, for more of them than one machine should play.

The workers write into the same folders: a shared file system is assumed, with the data home and
the folders under the same paths. The scheduler hands the job of a lost worker to another one, which
goes on with the run. Give workers one thread each (`dask worker --nthreads 1`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from fairsaoml.compare.engine import Event, Job, OnEvent, give_up, play
from fairsaoml.core.errors import ConfigError, FairSAOMLError, RunError
from fairsaoml.runs.runner import Interrupted
from fairsaoml.streams.catalog import is_table
from fairsaoml.streams.datasets.home import HOME_VARIABLE, data_home

__all__ = ["run_on_cluster"]

CONNECT_SECONDS = 30
STOP_SECONDS = 120  # for a worker to finish its round, or to give up compiling one
STOPPED = "stopped"  # the last event of a job that was told to stop


def run_on_cluster(
    jobs: Sequence[Job], waiting: Sequence[int], address: str, on_event: OnEvent
) -> None:
    """Play the waiting jobs on the cluster at an address; called by `run_all`."""
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError(
            "expected distributed to be installed; pip install 'fairsaoml[dask]'"
        ) from None
    for number in waiting:
        stream = jobs[number].spec.stream
        if is_table(stream) and not Path(stream).is_absolute():
            raise ConfigError(
                f"expected a path that every worker understands, got {stream!r}; "
                "give the table's absolute path"
            )
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(f"expected a Dask scheduler at {address}, got {error}") from None
    with client:
        _run(client, jobs, waiting, on_event)


def _run(client: Any, jobs: Sequence[Job], waiting: Sequence[int], on_event: OnEvent) -> None:
    topic = f"fairsaoml-{uuid4().hex}"
    news: SimpleQueue[Event | int] = SimpleQueue()  # events, and the numbers of jobs that ended
    # `log_event` carries plain data only, so an event travels as a list.
    client.subscribe_topic(topic, lambda stamped: news.put(Event(*stamped[1])))
    futures = {
        number: client.submit(
            _play_there,
            jobs[number]._replace(folder=jobs[number].folder.resolve()),
            number,
            topic,
            str(data_home().absolute()),
            key=f"{topic}-{number}",
            pure=False,
            priority=-number,  # in their order, as far as workers are free
        )
        for number in waiting
    }
    for number, future in futures.items():
        future.add_done_callback(lambda _, number=number: news.put(number))
    started: set[int] = set()
    ended: set[int] = set()
    try:
        while len(ended) < len(futures):
            said = news.get()
            if isinstance(said, int):
                _check(futures[said], jobs[said])
                ended.add(said)
                on_event(Event("finished", said))
            elif said.job not in ended:
                if said.kind == "started" and said.job in started:
                    on_event(said._replace(kind="lost"))
                started.add(said.job)
                on_event(said)
    except BaseException:
        client.cancel(list(futures.values()))
        _await_stops(news, started - ended)
        raise
    finally:
        client.unsubscribe_topic(topic)


def _check(future: Any, job: Job) -> None:
    """Raise what a job raised, as an error that says what to do."""
    from distributed.scheduler import KilledWorker

    if future.status == "cancelled":
        raise RunError(f"the cluster let go of the run in {job.folder}; the same call goes on")
    error = future.exception()
    if error is None:
        return
    if isinstance(error, KilledWorker):
        raise give_up(job) from None
    if isinstance(error, FairSAOMLError):
        raise error
    raise RunError(f"the run in {job.folder} failed: {error!r}") from error


def _await_stops(news: "SimpleQueue[Event | int]", running: set[int]) -> None:
    """Wait until nobody writes any more, so that the same command can be given at once."""
    try:
        while running:
            said = news.get(timeout=STOP_SECONDS)
            if isinstance(said, Event) and said.kind == STOPPED:
                running.discard(said.job)
    except Empty:
        pass


def _play_there(job: Job, number: int, topic: str, home: str) -> None:
    """A job on a worker of the cluster."""
    from distributed import get_worker

    os.environ[HOME_VARIABLE] = home
    worker = get_worker()
    key = worker.get_current_task()

    def tell(event: Event) -> None:
        # Told to stop, or the one who asked is gone: Dask then no longer waits for the task, and
        # would let it write on beside whoever plays it next.
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Interrupted("stopped")
        if event.kind != "finished":  # the future says so
            worker.log_event(topic, list(event))

    try:
        play(job, number, tell)
    except Interrupted:
        worker.log_event(topic, list(Event(STOPPED, number)))
        raise
