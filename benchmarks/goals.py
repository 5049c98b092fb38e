"""The goals on `synthetic`, measured: `python benchmarks/goals.py [LEARNER] [0-4] [key=value ...]`.

For each generator and domain: pooled figures of the last ten rounds, the distance to the best fair
rule, and in which round after the change the two-round pooled accuracy and DP are back within .05
of those last ten. Defaults, five seeds.
"""

import sys
from collections.abc import Iterable
from typing import Any

from fairsaoml.cli.options import parse_settings
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.metrics import figures
from fairsaoml.evaluate.metrics import pooled as counts_of
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs.spec import RunSpec, Setup

WITHIN = 0.05
LAST = 10

Records = list[dict[str, Any]]


def pooled(records: Records, rounds: Iterable[int]) -> dict[str, Any]:
    """Figures of all rows of some rounds, all seeds together."""
    wanted = set(rounds)
    return figures(counts_of(line for line in records if line["round"] in wanted))


def recovery(records: Records, rounds: range, goal: dict[str, Any]) -> int | None:
    """The round of the domain by which two rounds in a row are as good as its end, or None."""
    for first in rounds[:-1]:
        found = pooled(records, (first, first + 1))
        if all((found[key] or 0) >= goal[key] - WITHIN for key in ("accuracy", "dp_ratio")):
            return first + 1 - rounds.start + 1
    return None


def main(learner: str, generators: range, settings: dict[str, Any]) -> None:
    """One line per generator and domain."""
    use_cache()
    one_thread()
    print("| generator | domain | accuracy | below best fair | DP | EO | back in round |")
    print("|---|---|---|---|---|---|---|")
    for generator in generators:
        spec = RunSpec(
            stream="synthetic",
            learner=learner,
            stream_settings={"generator": generator},
            learner_settings=settings,
        )
        game = Setup.of(spec)
        played = prequential(game.stream, game.learner, game.problem, spec.seeds)
        records = [record for round in played for record in round.records]
        for domain in dict.fromkeys(record["domain"] for record in records):
            numbers = [r["round"] for r in records if r["domain"] == domain]
            rounds = range(min(numbers), max(numbers) + 1)
            end = pooled(records, rounds[-LAST:])
            below = game.stream.best[domain]["fair_accuracy"] - end["accuracy"]
            print(
                f"| {generator} | {domain} | {end['accuracy']:.3f} | {below:.3f} "
                f"| {end['dp_ratio']:.3f} | {end['eo_ratio']:.3f} "
                f"| {recovery(records, rounds, end) or '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    defaults = ["fairsaoml-decoupled", "0-9"]
    learner, generators, *pairs = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
    first, _, last = generators.partition("-")
    main(learner, range(int(first), int(last or first) + 1), parse_settings(pairs))
