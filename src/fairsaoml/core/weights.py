"""Expert combiners: from credit to weights that sum to one over the experts present.

Everything is in log space: exp(R^2 / 3C) overflows float32 at R = C = 300.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

HEDGE_SCALE = 3.0  # the 3 in exp(R^2 / 3C)

Credit = Float[Array, "level"]
Present = Bool[Array, "level"]


def log_potential(regret: Credit, abs_regret: Credit) -> Credit:
    """log Phi(R, C) = [R]_+^2 / 3C, and 0 where R <= 0 or C <= 0 (D12)."""
    positive = (regret > 0) & (abs_regret > 0)
    return jnp.where(positive, regret**2 / (HEDGE_SCALE * jnp.where(positive, abs_regret, 1.0)), 0)


def ada_normal_hedge(
    regret: Credit, abs_regret: Credit, present: Present, *, printed: bool = True
) -> Credit:
    """Mass of each expert this round (Eq. 9).

    w(R, C) = (Phi(R+1, C+1) - Phi(R-1, C-1)) / 2 as printed in the paper; Luo and Schapire (2015)
    have C+1 in both terms (`printed=False`), and only that form satisfies their key lemma.
    All masses zero: uniform over the experts present (D12).

    >>> present = jnp.array([True, True, False])
    >>> credit = jnp.array([1.0, -1.0, 0.0])
    >>> ada_normal_hedge(credit, jnp.abs(credit), present).round(3).tolist()
    [1.0, 0.0, 0.0]
    >>> ada_normal_hedge(jnp.zeros(3), jnp.zeros(3), present).tolist()
    [0.5, 0.5, 0.0]
    """
    after = log_potential(regret + 1, abs_regret + 1)
    before = log_potential(regret - 1, abs_regret - 1 if printed else abs_regret + 1)
    rises = after > before
    fall = jnp.where(rises, before - after, -1.0)
    log_mass = jnp.where(rises, after + jnp.log(-jnp.expm1(fall)) - jnp.log(2.0), -jnp.inf)
    return normalise(log_mass, present)


def uniform(present: Present) -> Credit:
    """The same weight for every expert present.

    >>> uniform(jnp.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    return normalise(jnp.zeros(present.shape), present)


def normalise(log_mass: Credit, present: Present) -> Credit:
    """exp(log_mass) over the experts present, to sum 1; uniform where all of it is 0."""
    log_mass = jnp.where(present, log_mass, -jnp.inf)
    nobody = jnp.all(jnp.isneginf(log_mass))
    return jax.nn.softmax(jnp.where(nobody, jnp.where(present, 0.0, -jnp.inf), log_mass))
