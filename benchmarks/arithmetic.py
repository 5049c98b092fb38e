"""Our round against its own arithmetic: `python -m benchmarks.arithmetic [--full]`.

The same matrix products back to back, each batched over its experts, and nothing else: no rows
gathered, no losses, no draws. They follow from shapes (`products`). PyTorch or NumPy, on one thread
or on two, whichever is fastest.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks import workload
from benchmarks.measure import STEADY, Measured, at_most, taking_turns
from benchmarks.workload import Game, Size

__all__ = ["Product", "measure", "products"]

GOAL = at_most(2.5)
HIDDEN = (40, 40)
CAPACITY = 1000  # rows per class of a sample, the default
THREADS = (1, 2)
TURNS, TURNS_IN_FULL = 10, 60
TYPICAL_AWAKE = 2


class Product(NamedTuple):
    """(expert, rows, inner) times (expert, inner, columns); which side lies transposed."""

    experts: int
    rows: int
    inner: int
    columns: int
    transposed: str = ""  # "left", "right" or neither


def forward(experts: int, rows: int, features: int) -> Iterator[Product]:
    """Rows through the layers."""
    widths = (features, *HIDDEN, 1)
    for wide, narrow in pairwise(widths):
        yield Product(experts, rows, wide, narrow)


def backward(experts: int, rows: int, features: int) -> Iterator[Product]:
    """Slopes back through them: for every layer's weights, and for all inputs but the features."""
    widths = (features, *HIDDEN, 1)
    for layer, (wide, narrow) in enumerate(pairwise(widths)):
        yield Product(experts, wide, rows, narrow, "left")
        if layer:
            yield Product(experts, rows, narrow, wide, "right")


def curvature(experts: int, rows: int, features: int) -> Iterator[Product]:
    """The derivative of a gradient along a direction.

    Layer by layer the direction goes forward (`rows x dW`, and `d rows x W` past the first) and
    back, where both factors of every product of the backward pass have a derivative; the features
    and the loss's slope at the score have none.
    """
    yield from forward(experts, rows, features)
    yield from (one for one in forward(experts, rows, features) if one.inner != features)
    yield from backward(experts, rows, features)
    yield from (one for one in backward(experts, rows, features) if one.rows != features)


def products(size: Size, kind: str, iterations: int = 20) -> Counter[Product]:
    """All matrix products of a typical round and how often each is done.

    Sleepers' slopes, which the first-order gradient has of those that have weight, are left out.

    >>> from benchmarks.workload import SMALL
    >>> found = products(SMALL, "fairsaoml, first-order")
    >>> found[Product(4, 200, 41, 40)], found[Product(2, 41, 200, 40, "left")]
    (2, 40)
    """
    levels, awake, features = size.levels, TYPICAL_AWAKE, size.features
    rows = 2 * min(size.per_class, CAPACITY // 4)  # a draw takes half of its half of a sample
    every, some = (levels, rows, features), (awake, rows, features)
    # The base learner's gradient, the violation where it leads, and the gradient there.
    once = [*forward(*some), *backward(*some), *forward(*some), *forward(*some), *backward(*some)]
    if kind == "fairsaoml, exact":
        once += curvature(*some)  # back through the base learner
    # Sleepers are looked at once. Credit: the meta pair and the experts on a fresh query.
    counted = Counter(forward(levels - awake, 2 * CAPACITY, features))
    counted += Counter([*forward(*every), *forward(*every)])
    for product in once:
        counted[product] += iterations
    return counted


def operands(product: Product) -> tuple[np.ndarray, np.ndarray]:
    """Two factors that lie in memory as the round's do."""
    random = np.random.default_rng(0)
    e, n, k, m, transposed = product
    left = random.normal(size=(e, k, n) if transposed == "left" else (e, n, k))
    right = random.normal(size=(e, m, k) if transposed == "right" else (e, k, m))
    left, right = left.astype(np.float32), right.astype(np.float32)
    return (
        left.swapaxes(1, 2) if transposed == "left" else left,
        right.swapaxes(1, 2) if transposed == "right" else right,
    )


def multipliers(counted: Counter[Product]) -> dict[str, Callable[[], None]]:
    """Ways to do them all, back to back, into memory that is there already."""
    import torch
    from threadpoolctl import threadpool_limits

    jobs = [
        (*operands(product), np.empty(product[:2] + product[3:4], np.float32), count)
        for product, count in counted.items()
    ]
    in_torch = [(*map(torch.from_numpy, job[:3]), job[3]) for job in jobs]

    def by_numpy(threads: int) -> None:
        with threadpool_limits(threads):
            for left, right, out, count in jobs:
                for _ in range(count):
                    np.matmul(left, right, out=out)

    def by_torch(threads: int) -> None:
        torch.set_num_threads(threads)
        for left, right, out, count in in_torch:
            for _ in range(count):
                torch.bmm(left, right, out=out)

    return {
        f"{name}, {threads} threads": partial(way, threads)
        for name, way in (("NumPy", by_numpy), ("PyTorch", by_torch))
        for threads in THREADS
    }


def measure(full: bool = False) -> list[Measured]:
    """How many times its arithmetic a typical round takes, by size and learner."""
    return [of_round(size, kind, full) for size in workload.SIZES for kind in workload.KINDS]


def of_round(size: Size, kind: str, full: bool) -> Measured:
    """One row: the round and the bare products take turns."""
    game = Game(size, kind)
    counted = products(size, kind, game.config.meta_iterations)
    contenders = {"ours": partial(game.play, size.typical)} | multipliers(counted)
    seconds = taking_turns(contenders, turns=TURNS_IN_FULL if full else TURNS, steady=STEADY)
    ours = seconds.pop("ours")
    best = min(seconds, key=seconds.__getitem__)
    return Measured(
        what=f"{size.name}: typical round of {kind} against its arithmetic",
        ratio=ours / seconds[best],
        goal=GOAL,
        detail=f"{1e3 * ours:.1f} ms against {1e3 * seconds[best]:.1f} ms ({best})",
    )


if __name__ == "__main__":
    for row in measure("--full" in sys.argv):
        print(f"{row.what}: {row.ratio:.2f} ({row.goal}); {row.detail}", flush=True)
