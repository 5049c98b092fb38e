"""Tasks of a real stream where its data are at home, made ones of the same size where not."""

from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.workload import Size
from benchmarks.workload import tasks as made
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.streams.catalog import open_stream
from fairsaoml.streams.datasets.home import NotHere
from fairsaoml.streams.stream import checked

__all__ = ["Rows", "made_rows", "real_rows"]


class Rows(NamedTuple):
    """Tasks that are ready to be learned from, and where they are from."""

    schema: Schema
    tasks: list[Task]
    source: str

    @property
    def row_count(self) -> int:
        return sum(len(task.y) for task in self.tasks)


def made_rows(size: Size, count: int) -> Rows:
    """So many tasks of a size."""
    schema = Schema(
        features=tuple(f"x{index}" for index in range(size.features)),
        attributes=(Attribute("group", ("a", "b")),),
    )
    tasks = [
        Task(np.asarray(batch.x), np.asarray(batch.y), np.asarray(batch.group))
        for batch in made(size, count)
    ]
    return Rows(schema, tasks, f"made rows, {size.rows} a task")


def real_rows(name: str, count: int, like: Size) -> Rows:
    """The first tasks of a stream; `like` says how large they are, for who has not got it."""
    try:
        stream = open_stream(name)
        arrived = list(islice(stream.tasks(0), count))
    except NotHere:
        return made_rows(like, count)
    tasks = [checked(task, stream.schema, round) for round, task in enumerate(arrived, start=1)]
    return Rows(stream.schema, tasks, name)
