"""A model of your own: a factorization machine, learned by the paper's learner.

A model is two functions: parameters from a key, and the logit of a row. Whatever JAX can
differentiate will do. As an `Entry` it is a learner with a name: a package brings it to the
command and to every comparison by an entry point, as in `add_a_learner.py`.
"""

from typing import Any

import jax
import jax.numpy as jnp

from fairsaoml import Learner, Problem, make_problem, open_stream, prequential
from fairsaoml.core.types import Model
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, fairsaoml
from fairsaoml.learners.registry import Entry

RANK = 3


def factorization(features: int, rank: int) -> Model:
    """z = b + w . x + sum over i < j of (v_i . v_j) x_i x_j (Rendle 2010)."""

    def init(key: Any) -> dict[str, jax.Array]:
        factors = 0.1 * jax.random.normal(key, (features, rank))  # equal ones would stay equal
        return {"bias": jnp.zeros(()), "weight": jnp.zeros(features), "factors": factors}

    def score(params: dict[str, jax.Array], row: jax.Array) -> jax.Array:
        # The sum over pairs is half of the square of the sum less the sum of squares.
        mixed = row @ params["factors"]
        alone = (row**2) @ (params["factors"] ** 2)
        return params["bias"] + params["weight"] @ row + 0.5 * (mixed**2 - alone).sum()

    return Model(init=init, scores=jax.vmap(score, in_axes=(None, 0)))


def factorized(problem: Problem, config: FairSAOMLConfig, rank: int = RANK) -> Learner:
    """The paper's learner with this model in the place of its own."""
    model = factorization(len(problem.schema.features), rank)
    return fairsaoml(problem._replace(model=model), config)


ENTRY = Entry(FairSAOMLConfig, factorized, "experts that know pairs", "examples/your_own_model.py")


def main() -> None:
    """What `fairsaoml run synthetic --learner factorized` would play, if it were registered."""
    stream = open_stream("synthetic", {"tasks": 4, "rows": 200})
    config = FairSAOMLConfig(horizon=stream.length)
    problem = make_problem(config, stream.schema)
    for played in prequential(stream, ENTRY.factory(problem, config), problem, seeds=[0]):
        record = played.records[0]
        print(f"round {record['round']}: {record['domain']}, accuracy {record['accuracy']:.3f}")


if __name__ == "__main__":
    main()
