"""Ten seeds of a run: one by one, together as `fairsaoml run` plays them, and by two processes.

All play the same rounds of `synthetic` in turn, metrics included; the first rounds, which compile,
are not counted. One by one is ten times one seed.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.measure import Measured, at_least, taking_turns
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs.spec import RunSpec, Setup

__all__ = ["measure"]

SEEDS = range(10)
PROCESSES = 2
WARM, ROUNDS = 2, 32  # `synthetic` has 90


def measure(full: bool) -> list[Measured]:
    """The default learner; all three of ours in the full form."""
    learners = ["fairsaoml-decoupled", "fairsaoml"]
    return [row for learner in learners[: None if full else 1] for row in of_learner(learner)]


def of_learner(learner: str) -> list[Measured]:
    """What `run` does by default, and the best that could be done."""
    shares = [SEEDS[first::PROCESSES] for first in range(PROCESSES)]
    with ExitStack() as stack:
        alone, together, *workers = (
            stack.enter_context(Worker(learner, seeds)) for seeds in (SEEDS[:1], SEEDS, *shares)
        )

        def by_processes() -> None:
            for worker in workers:
                worker.begin()
            for worker in workers:
                worker.finish()

        seconds = taking_turns(
            {
                "one seed": alone.play,
                "together": together.play,
                "two processes": by_processes,
            },
            turns=ROUNDS,
            warmup=WARM,
        )
    one_by_one = len(SEEDS) * seconds.pop("one seed")
    best = min(seconds, key=seconds.__getitem__)
    sides = ", ".join(f"{who} {1e3 * taken:.0f} ms" for who, taken in seconds.items())
    detail = f"a round of ten seeds: one by one {1e3 * one_by_one:.0f} ms, {sides}"
    return [
        Measured(
            f"ten seeds of {learner}: together, as `run` plays them, against one by one",
            one_by_one / seconds["together"],
            at_least(1),
            detail,
        ),
        Measured(
            f"ten seeds of {learner}: the best way ({best}) against one by one",
            one_by_one / seconds[best],
            at_least(1.5),
            detail,
        ),
    ]


def rounds_of(learner: str, seeds: Sequence[int]) -> Callable[[], object]:
    """A call that plays the next round."""
    game = Setup.of(RunSpec(stream="synthetic", learner=learner))
    rounds = prequential(game.stream, game.learner, game.problem, seeds)
    return lambda: next(rounds)


class Worker:
    """A process that plays some of the seeds, a round whenever it is told to."""

    def __init__(self, learner: str, seeds: Sequence[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, learner, seeds), daemon=True)

    def __enter__(self) -> "Worker":
        self._process.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._pipe.send(False)
        self._process.join()

    def begin(self) -> None:
        self._pipe.send(True)

    def finish(self) -> None:
        self._pipe.recv()

    def play(self) -> None:
        self.begin()
        self.finish()


def _work(pipe: Connection, learner: str, seeds: Sequence[int]) -> None:
    one_thread()
    use_cache()
    play = rounds_of(learner, seeds)
    while pipe.recv():
        play()
        pipe.send(True)
