"""A stream whose tasks are cut beforehand: slices of a table, encoded when they are asked for.

The rows stay as small as the table holds them; only the task at hand is ever a matrix.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Task
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.columns import checksum
from fairsaoml.streams.table.encoder import Encoder

__all__ = ["TaskSlice", "equal_slices", "stream_of_slices"]


class TaskSlice(NamedTuple):
    """One task's rows, before they are numbers."""

    domain: str
    table: Any  # Arrow table
    sign: float = 1.0  # the features are multiplied by it after scaling


def equal_slices(table: Any, count: int, domain: str, sign: float = 1.0) -> list[TaskSlice]:
    """The rows in `count` slices of equal size; where that leaves a remainder, the first get it.

    >>> import pyarrow as pa
    >>> [task.table.num_rows for task in equal_slices(pa.table({"a": range(8)}), 3, "x")]
    [3, 3, 2]
    """
    if table.num_rows < count:
        raise DataError(
            f"{domain}: expected at least {count} rows, one for each task, got {table.num_rows}"
        )
    parts = np.array_split(np.arange(table.num_rows), count)
    return [TaskSlice(domain, table.slice(part[0], len(part)), sign) for part in parts]


def stream_of_slices(
    name: str,
    slices: Sequence[TaskSlice],
    encoder: Encoder,
    *,
    settings: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> Stream:
    """One task for each slice. What an encoder would remark on is by design here: see the docs."""
    assert encoder.label is not None
    label = encoder.label

    def tasks(seed: int) -> Iterator[Task]:
        for domain, table, sign in slices:
            yield Task(
                x=sign * encoder.transform(table),
                y=label.codes(table[label.column]).astype(np.float32),
                group=np.stack([role.codes(table).codes for role in encoder.sensitive], axis=1),
                domain=domain,
            )

    return Stream(
        name=name,
        schema=encoder.schema,
        tasks=tasks,
        length=len(slices),
        settings=settings,
        encoder=encoder.to_json(),
        fingerprint={"first_task": checksum(slices[0].table)},
        notes=notes,
    )
