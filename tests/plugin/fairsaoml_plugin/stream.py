"""A stream: two coins, of which the second group's is bent."""

from collections.abc import Iterator

import numpy as np

from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.streams.catalog import StreamEntry
from fairsaoml.streams.stream import Stream


def coins(*, bend: float = 0.2, tasks: int = 4, rows: int = 40) -> Stream:
    """Tasks of tosses; the one feature is who tossed, blurred."""

    def toss(seed: int) -> Iterator[Task]:
        for number in range(tasks):
            random = np.random.default_rng([seed, number])
            group = random.integers(0, 2, rows)
            heads = random.random(rows) < 0.5 + bend * group
            x = group[:, None] + random.normal(size=(rows, 1))
            yield Task(x=x, y=heads.astype(int), group=group[:, None], domain="table")

    return Stream(
        name="coins",
        schema=Schema(
            features=("thumb",), attributes=(Attribute(name="tosser", levels=("one", "two")),)
        ),
        tasks=toss,
        length=tasks,
        seeded=True,
        settings={"bend": bend, "tasks": tasks, "rows": rows},
    )


ENTRY = StreamEntry(coins, "tosses of two coins, one of them bent")
