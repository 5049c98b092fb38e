"""Compiled rounds are shared in a process: tests run the same few learners again and again.

A run builds its learner anew, reads its trace from disk, lowers it and reads its program from disk.
Here the program is kept as well, by the name that the trace has on disk: our code, the versions,
the learner's settings, the shapes. Whoever looks at another cache, or compiles otherwise, gets what
it would get without this.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax

from fairsaoml.core import experts
from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.evaluate import prequential, seeds, traced
from fairsaoml.evaluate.compilation import cache_folder
from fairsaoml.learners import cbce
from fairsaoml.runs import saved

KEPT = 16  # programs: some have forty megabytes


class Kept(OrderedDict):
    """The few values that were asked for last."""

    def or_new(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        if len(self) > KEPT:
            self.popitem(last=False)
        return self[key]


class Lowered:
    """A round before it is compiled, lowered only if nobody has compiled it."""

    def __init__(self, lower: Callable[[], Any], kept: Kept, key: Any) -> None:
        self.lower, self.kept, self.key = lower, kept, key

    def compile(self) -> Any:
        return self.kept.or_new(self.key, lambda: self.lower().compile())

    def as_text(self) -> str:
        return self.lower().as_text()


def share_programs() -> None:
    """Let rounds, and first states, that are made of the same be compiled once in this process."""
    folder, rounds, inits = cache_folder(), Kept(), Kept()
    lower, first_states = traced.TracedOnce.lower, seeds.first_states

    def is_usual() -> bool:
        optimised = not jax.config.values["jax_disable_most_optimizations"]
        return traced.cache_folder() == folder and not optimised

    def lower_once(self: Any, *arguments: Any) -> Any:
        if self.made_of is None or not is_usual():
            return lower(self, *arguments)
        key = (traced._path(self.made_of, arguments), self.donate)
        return Lowered(lambda: lower(self, *arguments), rounds, key)

    def first_states_once(learner: Any, seeds: Any) -> Any:
        if learner.turn or learner.made_of is None or not is_usual():
            return first_states(learner, seeds)
        init = jax.vmap(lambda key: learner.init(init_key(key)))
        key = (learner.made_of, experts.FIRST_LEVELS, cbce.FIRST_LEVELS)  # what tests make smaller
        return inits.or_new(key, lambda: jax.jit(init))(run_keys(seeds))

    traced.TracedOnce.lower = lower_once
    for module in (prequential, saved):
        module.first_states = first_states_once
