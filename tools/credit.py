"""How the experts of `fairsaoml` do against the meta pair: the table in docs/paper.md.

    python -m tools.credit movielens --rounds 45 --seeds 2 --set base=3

For each level: its weight at the end; the credit of a round, on rows that no expert adapted to; and
the same on the next task, before anybody learned from it: the meta pair's Lagrangian minus the
expert's, both with the meta dual. Positive means that the expert was better.
"""

import argparse
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.cli.options import parse_settings
from fairsaoml.core import prior
from fairsaoml.core.keys import init_key, round_keys, run_keys
from fairsaoml.core.primal_dual import lagrangian
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Batch, Params
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.prequential import all_rounds, rounds_of
from fairsaoml.learners import registry
from fairsaoml.streams.catalog import open_stream
from fairsaoml.streams.stream import checked


def main() -> None:
    """Run the learner, watch its experts, print a row for each seed and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream")
    parser.add_argument("--rounds", type=int, default=45)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    use_cache()
    stream = open_stream(given.stream)
    settings = {"horizon": stream.length, **parse_settings(given.set)}
    config = registry.configure("fairsaoml", settings)
    problem = make_problem(config, stream.schema)
    learner = registry.build("fairsaoml", config, stream.schema)

    def ahead(state: Any, batch: Batch) -> Any:
        learned = state.learned
        deployed = prior.deployed(state.prior, problem.decision, config.gap)

        def cost(primal: Params) -> Any:
            return lagrangian(problem, learned.meta._replace(primal=primal), batch, deployed)[0]

        return cost(learned.meta.primal) - jax.vmap(cost)(learned.bank.pair.primal)

    step, ahead = jax.jit(learner.step), jax.jit(ahead)
    for seed in range(given.seeds):
        key = run_keys([seed])[0]
        arrived = islice(rounds_of(stream, [seed]), given.rounds)
        tasks = [[checked(task, stream.schema, t)] for t, (task,) in enumerate(arrived, start=1)]
        batches = all_rounds(tasks, shared=True)
        state, credit, future = learner.init(init_key(key)), [], []
        for t in range(1, len(tasks) + 1):
            batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[t - 1]), batches)  # noqa: B023
            if t > 1:
                future.append(ahead(state, batch))
            before = state.learned.bank.regret
            state, info = step(round_keys(key, t).step, jnp.int32(t), state, batch)
            credit.append(state.learned.bank.regret - before)
        rows = {
            "weights at the end": info.weights,
            "credit a round": np.mean(credit, axis=0),
            "on the next task": np.mean(future, axis=0),
            "next tasks won": np.mean(np.array(future) > 0, axis=0),
        }
        for name, values in rows.items():
            print(f"seed {seed}, {name:20}", *(f"{value:8.4f}" for value in values), flush=True)


if __name__ == "__main__":
    main()
