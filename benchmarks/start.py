"""How long one waits: for `fairsaoml --help`, a new process's first round, a table's page.

A fresh process plays ten rounds with an empty cache of compiled programs, a second one with the
cache that the first has left. Where the horizon is unknown, rounds are learned by `OnlineLearner`,
as the estimators and the service do; where it is known, five seeds are played as `fairsaoml run`
does. In the child: `python -m benchmarks.start LEARNER known|unknown`.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory

from benchmarks.child import answer_of
from benchmarks.measure import Measured, at_most, taking_turns

__all__ = ["measure", "run_table", "seconds", "write_table"]

ROUNDS = 10
TABLE_ROWS = 3000
CASES = (
    ("fairsaoml-decoupled", "known"),
    ("fairsaoml", "known"),
)
MORE_CASES = (("fairsaoml-decoupled", "unknown"), ("fairsaoml", "unknown"))


def measure(full: bool) -> list[Measured]:
    """Help, then first rounds; the last are seconds, for nobody waits for a ratio."""
    cases = CASES + MORE_CASES if full else CASES
    rounds = (row for case in cases for row in of_first_round(*case))
    return [of_help(), *rounds, *of_a_table()]


def of_help() -> Measured:
    """Against an interpreter that does nothing."""
    command = str(Path(sys.executable).with_name("fairsaoml"))

    def started(*words: str) -> Callable[[], object]:
        return lambda: run(words, stdout=DEVNULL, check=True)

    seconds = taking_turns(
        {"help": started(command, "--help"), "pass": started(sys.executable, "-c", "pass")}
    )
    return Measured(
        "`fairsaoml --help` against `python -c pass`",
        seconds["help"] / seconds["pass"],
        at_most(10),
        f"{1e3 * seconds['help']:.0f} ms against {1e3 * seconds['pass']:.0f} ms",
    )


def of_first_round(learner: str, horizon: str) -> list[Measured]:
    """Seconds of a first round, without and with compiled programs on disk."""
    with TemporaryDirectory() as cache:
        cold, warm = (answer_of("start", learner, horizon, FAIRSAOML_CACHE=cache) for _ in range(2))
    who = f"{learner}, horizon {horizon}"
    return [
        Measured(
            f"{who}: seconds of the first round of all",
            cold["rounds"][0],
            at_most(3),
            f"in seconds; the tenth takes {1e3 * cold['rounds'][-1]:.0f} ms",
        ),
        Measured(
            f"{who}: seconds that a new process's first round takes longer than its tenth",
            warm["rounds"][0] - warm["rounds"][-1],
            at_most(1),
            f"in seconds; {warm['imports']:.1f} s of imports before it",
        ),
    ]


def of_a_table() -> list[Measured]:
    """Seconds of `fairsaoml run table.csv`, start to page, without and with compiled programs."""
    with TemporaryDirectory() as scratch:
        table = Path(scratch) / "table.csv"
        write_table(table, TABLE_ROWS)
        cold, warm = (seconds(lambda: run_table(table, Path(scratch) / "cache")) for _ in range(2))
    what = f"`fairsaoml run` on a table of {TABLE_ROWS:,} rows, start to page"
    return [
        Measured(f"{what}: seconds, nothing compiled before", cold, at_most(6), "in seconds"),
        Measured(f"{what}: seconds, compiled before", warm, at_most(2.5), "in seconds"),
    ]


def write_table(path: Path, rows: int) -> None:
    """A made table of loans: three numbers, two categories, a group and a label."""
    import numpy as np

    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, rows)
    age, income = rng.normal(40 + 3 * group, 10), rng.normal(50 + 5 * group, 12)
    debt = rng.normal(10, 4, rows)
    paid = income - 3 * debt + rng.normal(0, 12, rows) > 20
    lines = ["age,income,debt,region,kind,sex,paid"]
    for row in range(rows):
        numbers = f"{age[row]:.0f},{income[row]:.1f},{debt[row]:.2f}"
        kinds = f"{'NESW'[row % 4]},{'abc'[row % 3]},{'fm'[group[row]]}"
        lines.append(f"{numbers},{kinds},{'yes' if paid[row] else 'no'}")
    path.write_text("\n".join(lines) + "\n")


def run_table(table: Path, cache: Path, *more: str) -> None:
    """The command, as a person would type it."""
    command = str(Path(sys.executable).with_name("fairsaoml"))
    words = ["run", table, "--label", "paid", "--positive", "yes", "--sensitive", "sex", "--force"]
    run(
        [command, *map(str, words), *more, "--out", str(table.with_name("run"))],
        stdout=DEVNULL,
        stderr=DEVNULL,
        check=True,
        env={**os.environ, "FAIRSAOML_CACHE": str(cache)},
    )


def main(learner: str, horizon: str) -> None:
    """In the child: play, and print the seconds of imports and of each round."""
    begun = time.perf_counter()
    rounds = as_run(learner) if horizon == "known" else as_object(learner)
    imported = time.perf_counter()
    print(json.dumps({"imports": imported - begun, "rounds": [seconds(rounds) for _ in range(10)]}))


def seconds(play: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    play()
    return time.perf_counter() - begun


def as_run(learner: str) -> Callable[[], object]:
    """The next round of five seeds."""
    from fairsaoml.evaluate.compilation import use_cache
    from fairsaoml.evaluate.prequential import prequential
    from fairsaoml.evaluate.threads import one_thread
    from fairsaoml.runs.spec import RunSpec, Setup

    use_cache()
    spec = RunSpec(stream="synthetic", learner=learner)
    one_thread()
    game = Setup.of(spec)
    rounds = prequential(game.stream, game.learner, game.problem, spec.seeds)
    return lambda: next(rounds)


def as_object(learner: str) -> Callable[[], object]:
    """The next round of a learner that is fed by hand."""
    from fairsaoml.serve.online import OnlineLearner
    from fairsaoml.streams.synthetic import synthetic

    stream = synthetic()
    tasks = islice(stream.tasks(0), ROUNDS)
    held: list[OnlineLearner] = []

    def learn() -> None:
        if not held:  # its first state is compiled too
            held.append(OnlineLearner(stream.schema, learner))
        held[0].learn(next(tasks))

    return learn


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
