"""The two sizes that speed is spoken of in, a made stream of such tasks, and our compiled rounds.

A round of `fairsaoml` costs what its waking experts cost, so it is said which round is meant:
`typical` has two awake, as rounds have on average (63/32 of six experts, 15/8 of four); in
`crowded` all wake. All samples are full by then. Horizons are known: all levels are present.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, Problem, Schema
from fairsaoml.learners import registry

__all__ = ["KINDS", "LARGE", "SIZES", "SMALL", "Game", "Size", "round_key", "tasks"]


class Size(NamedTuple):
    """How much there is to compute; everything else is a default."""

    name: str
    features: int
    per_class: int  # rows per class of a support draw, and of a query draw
    rows: int  # of a task: enough of both classes for both draws
    levels: int  # one expert each

    @property
    def horizon(self) -> int:
        """So many rounds have so many levels at base 2."""
        return 2**self.levels

    @property
    def crowded(self) -> int:
        """The round in which the longest interval starts for the second time: all wake."""
        return self.horizon // 2 + 1

    @property
    def typical(self) -> int:
        """The next round in which two wake."""
        return self.crowded + 2


LARGE = Size("large", features=111, per_class=400, rows=2048, levels=6)
SMALL = Size("small", features=41, per_class=100, rows=512, levels=4)
SIZES = (LARGE, SMALL)

# What is measured: a learner's name, and its settings besides the size.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "fairsaoml, first-order": ("fairsaoml", {"meta_gradient": "first-order"}),
    "fairsaoml, exact": ("fairsaoml", {"meta_gradient": "exact"}),
}
KEY = 0  # of all made rows and of all draws


class Game:
    """A learner's compiled round on a made stream; each call plays a round and moves on."""

    def __init__(self, size: Size, kind: str) -> None:
        name, settings = KINDS[kind]
        sized = {"support": size.per_class, "query": size.per_class, "horizon": size.horizon}
        schema = Schema(
            features=tuple(f"x{index}" for index in range(size.features)),
            attributes=(Attribute("group", ("a", "b")),),
        )
        self.size = size
        self.config: Any = registry.configure(name, settings | sized)
        self.problem: Problem = make_problem(self.config, schema)
        self.learner = registry.build(name, self.config, schema)
        self.batches = tasks(size, size.horizon)
        self.state: Any = jax.jit(self.learner.init)(jax.random.key(KEY))
        # As runs do it: the key is folded inside, the old state's memory is given to the new one.
        self.step = jax.jit(
            lambda round, state, batch: self.learner.step(round_key(round), round, state, batch),
            donate_argnums=1,
        )
        for round in range(1, size.crowded):
            self.play(round)

    def play(self, round: int) -> None:
        """A round, to its end."""
        batch = self.batches[round - 1]
        self.state, _ = self.step(np.int32(round), self.state, batch)
        jax.block_until_ready(self.state)


def round_key(round: Any) -> Any:
    """The key of a round's draws."""
    return jax.random.fold_in(jax.random.key(KEY), round)


def tasks(size: Size, count: int) -> list[Batch]:
    """Rows whose label leans on a few features and on the group; no two tasks alike."""
    random = np.random.default_rng(KEY)
    slope = random.normal(size=size.features) / size.features**0.5

    def task() -> Batch:
        x = random.normal(size=(size.rows, size.features)).astype(np.float32)
        group = (random.random(size.rows) < 0.4).astype(np.int32)
        y = x @ slope + 0.5 * group + random.normal(size=size.rows) > 0.2
        return Batch(
            x=jnp.asarray(x),
            y=jnp.asarray(y, jnp.float32),
            group=jnp.asarray(group[:, None]),
            weight=jnp.ones(size.rows),
        )

    return [task() for _ in range(count)]
