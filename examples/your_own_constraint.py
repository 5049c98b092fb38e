"""A constraint of your own: parity among people of like income, and no other.

Demographic parity compares everybody. Conditional parity compares within strata that may well
decide; here the two halves of `income`. A constraint is a signed gap between two sides of a batch,
smooth in the scores, and how wide it may be; a learner takes any number of them.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml import Batch, Schema, configure, make_problem, open_stream, prequential, registered
from fairsaoml.core.fairness import sides
from fairsaoml.core.types import Constraint

LEARNER = "fairsaoml"
SHARPNESS = 3.0  # margins are logits from the threshold; a steep sigmoid is nearly the decision


def conditional_parity(
    schema: Schema, feature: str, *, above: bool, tolerance: float = 0.02
) -> Constraint:
    """Equal selection rates among the rows whose feature is above (or not above) 0."""
    column = schema.features.index(feature)
    attribute, levels = 0, len(schema.attributes[0].levels)

    def both_sides(batch: Batch) -> tuple[jax.Array, jax.Array]:
        one, other = sides(batch, attribute, level=1, levels=levels, label=None)
        spoken_of = (batch.x[:, column] > 0) == above
        return jnp.where(spoken_of, one, 0.0), jnp.where(spoken_of, other, 0.0)

    name = f"parity[{feature} {'>' if above else '<='} 0]"
    return Constraint(
        name=name,
        sides=both_sides,
        score=lambda margins, weight: jax.nn.sigmoid(SHARPNESS * margins),
        tolerance=tolerance,
    )


def gaps(constrained: bool) -> Iterator[float]:
    """The hard gap between the groups' selection rates, by half of `income`: the last rounds'."""
    stream = open_stream("synthetic", {"tasks": 6, "rows": 400})
    config = configure(LEARNER, {"constraints": "none", "model": "logistic", "horizon": 18})
    problem = make_problem(config, stream.schema)
    if constrained:
        halves = [conditional_parity(stream.schema, "income", above=side) for side in (False, True)]
        problem = problem._replace(constraints=tuple(halves))
    learner = registered()[LEARNER].factory(problem, config)
    played = list(prequential(stream, learner, problem, seeds=[0]))[-4:]
    tasks, _, decisions = zip(*(one.predictions[0] for one in played), strict=True)
    income = np.concatenate([task.x[:, stream.schema.features.index("income")] for task in tasks])
    group = np.concatenate([task.group[:, 0] for task in tasks])
    decided = np.concatenate(decisions)
    for above in (False, True):
        half = (income > 0) == above
        yield abs(decided[half & (group == 1)].mean() - decided[half & (group == 0)].mean())


def main() -> None:
    """The same learner, without and with it."""
    for constrained in (False, True):
        low, high = gaps(constrained)
        word = "with" if constrained else "without"
        print(f"{word} the constraint: gap {low:.2f} at low income, {high:.2f} at high income")


if __name__ == "__main__":
    main()
