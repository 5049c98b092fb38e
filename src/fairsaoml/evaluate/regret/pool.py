"""Comparators where the problem is not convex: the best of a pool of models, an approximation.

For a network, or for gaps of probabilities or decisions, nobody knows the best model of a window.
A pool of models is fitted instead, on windows of several lengths and with several prices on
unfairness, and each is also taken with its scores drawn towards its bias, down to the constant
model, which is always fair. Every model is then measured on *all* rows of every round; a window's
comparator is the best of the pool that keeps the window's constraints. So its figures are true, its
constraints are kept, and its loss is an upper bound of the best model's: the regret against it is
a lower bound of the regret. Models that adapt in each round before they are measured (Eq. 4) are
drawn towards zero instead; where none is fair, the least unfair is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import NDArray

from fairsaoml.core.errors import ConfigError
from fairsaoml.core.keys import init_key, round_keys, run_keys
from fairsaoml.core.primal_dual import project
from fairsaoml.core.types import Batch, Learner, Params, PrimalDual, Problem, Task
from fairsaoml.evaluate.measures import after_adapting, loss_and_violation
from fairsaoml.evaluate.regret.comparator import Comparators
from fairsaoml.evaluate.regret.rounds import Floats, deployment, priors, window_sums
from fairsaoml.evaluate.seeds import bucket, part_of, stacked

PRICES = (0.0, 0.3, 1.0, 4.0)  # of a gap, in units of loss; one start each
SHARES = (1.0, 0.9, 0.75, 0.5, 0.3, 0.15, 0.05, 0.0)  # of a model's scores that are kept
STEPS = 300
STEP = 0.02  # of Adam
DECAYS = (0.9, 0.99)  # of its two running means
ROWS = 128  # of a round that a fit's step looks at
MOST_WINDOWS = 160  # windows that models are fitted on

Adapting = Callable[[Params, Array, Batch], tuple[Array, Array]]


class Pool(NamedTuple):
    """Figures of every model of the pool in every round."""

    loss: Floats  # (round, model)
    violation: Floats  # (round, model, constraint)


def fit_pool(
    tasks: Sequence[Task],
    problem: Problem,
    config: Mapping[str, Any],
    windows: Sequence[int],
    *,
    scored: Sequence[NDArray[np.bool_]] | None = None,
    adapted: Adapting | None = None,
) -> Pool:
    """Fit and measure a pool; models are charged for the rows that are `scored`, all by default.

    `adapted` says, of parameters and a round, the loss and the violations after adapting to it.
    """
    whole = batches = stacked(tasks, bucket(max(len(task.y) for task in tasks)))
    if scored is not None:
        batches = whole._replace(weight=whole.weight.copy())
        for weight, rows in zip(batches.weight, scored, strict=True):
            weight[: len(rows)] *= rows
    deployed = deployment(tasks, config)
    shift, threshold = (jnp.asarray(by_round, jnp.float32) for by_round in deployed)
    fit = jax.jit(partial(_fit, problem, config["radius"]))
    models = fit(batches, shift, threshold, _places(len(tasks), windows))
    shares = jnp.asarray(SHARES, jnp.float32)

    def measured(model: Params, t: Array, rows: Batch) -> tuple[Array, Array]:
        """Loss and violations of a model in a round, for every share of its scores."""
        if adapted is not None:
            shrunk = jax.tree.map(lambda leaf: jnp.multiply.outer(shares, leaf), model)
            return jax.vmap(lambda theta: adapted(theta, t, rows))(shrunk)
        scores, bias = problem.model.scores(model, rows.x), _bias(problem, model)

        def with_share(share: Array) -> tuple[Array, Array]:
            scaled = bias + share * (scores - bias) + shift[t]
            return loss_and_violation(problem, scaled, scaled - threshold[t], rows)

        return jax.vmap(with_share)(shares)

    measure = jax.jit(jax.vmap(measured, in_axes=(0, None, None)))
    played = batches if adapted is None else whole
    by_round = [measure(models, np.int32(t), part_of(played, t)) for t in range(len(tasks))]
    loss, violation = (np.stack(of).astype(np.float64) for of in zip(*by_round, strict=True))
    loss = loss.reshape(len(tasks), -1)
    return Pool(loss=loss, violation=violation.reshape(*loss.shape, len(problem.constraints)))


def best_of_pool(pool: Pool, length: int, *, fair: bool, every_round: bool = False) -> Comparators:
    """The best model of the pool for every window of a length; fair over it, or in every round.

    >>> pool = Pool(np.array([[1.0, 0.0], [1.0, 1.5]]), np.array([[[-1.0], [0.5]], [[-1.0], [-1]]]))
    >>> [best_of_pool(pool, 1, fair=fair).loss.tolist() for fair in (False, True)]
    [[0.0, 1.0], [1.0, 1.0]]
    >>> [best_of_pool(pool, 2, fair=True, every_round=every).loss[0] for every in (False, True)]
    [np.float64(1.5), np.float64(2.0)]
    """
    loss, violation = (window_sums(values, length) for values in pool)
    unfair = window_sums(np.maximum(pool.violation, 0.0), length) if every_round else violation
    excess = np.maximum(unfair, 0.0).sum(axis=2) * fair
    chosen = np.lexsort((loss, excess), axis=1)[:, 0]  # (window,)
    every = np.arange(len(loss))
    return Comparators(
        start=every,
        length=length,
        point=chosen[:, None].astype(np.float64),
        loss=loss[every, chosen],
        bound=np.full(len(every), -np.inf),
        violation=violation[every, chosen],
    )


def _places(rounds: int, windows: Sequence[int]) -> Any:
    """First round and length of the windows that models are fitted on: each half overlapped."""
    places = [
        (start, length)
        for length in windows
        for start in sorted({*range(0, rounds - length + 1, max(1, length // 2)), rounds - length})
    ]
    stride = -(-len(places) // MOST_WINDOWS)
    return jnp.asarray(places[::stride], jnp.int32)


def _fit(
    problem: Problem,
    radius: float | None,
    batches: Batch,
    shift: Array,
    threshold: Array,
    places: Array,
) -> Params:
    """One model for every window and price, by Adam on rows of rounds drawn from the window."""

    def one(key: Any, place: Array, price: Array) -> Params:
        start_key, run_key = jax.random.split(key)
        start, as_tree = ravel_pytree(project(problem.model.init(start_key), radius))

        def objective(flat: Array, draw: Any) -> Float[Array, ""]:
            round_key, row_key = jax.random.split(draw)
            t = place[0] + jax.random.randint(round_key, (), 0, place[1])
            batch = part_of(batches, t)
            size = min(ROWS, batch.y.shape[0])
            # Rows with weight come first: a draw without replacement among them.
            order = jax.random.uniform(row_key, batch.y.shape) - batch.weight
            some = part_of(batch, jnp.argsort(order)[:size])
            scores = problem.model.scores(as_tree(flat), some.x) + shift[t]
            loss, violation = loss_and_violation(problem, scores, scores - threshold[t], some)
            return loss + price * violation.sum()

        def step(carry: tuple, turn: tuple) -> tuple[tuple, None]:
            flat, mean, square = carry
            number, draw = turn
            slope, (a, b) = jax.grad(objective)(flat, draw), DECAYS
            mean, square = a * mean + (1 - a) * slope, b * square + (1 - b) * slope**2
            unbiased = mean / (1 - a ** (number + 1)), square / (1 - b ** (number + 1))
            size = STEP * (1 - number / STEPS)
            flat = flat - size * unbiased[0] / (jnp.sqrt(unbiased[1]) + 1e-8)
            return (ravel_pytree(project(as_tree(flat), radius))[0], mean, square), None

        nothing = jnp.zeros_like(start)
        turns = (jnp.arange(STEPS, dtype=jnp.float32), jax.random.split(run_key, STEPS))
        return as_tree(jax.lax.scan(step, (start, nothing, nothing), turns)[0][0])

    prices = jnp.asarray(PRICES if problem.constraints else PRICES[:1], jnp.float32)
    keys = jax.random.split(jax.random.key(0), (len(places), len(prices)))
    at_prices = jax.vmap(one, in_axes=(0, None, 0))
    fitted = jax.vmap(at_prices, in_axes=(0, 0, None))(keys, places, prices)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), fitted)


def _bias(problem: Problem, params: Params) -> Float[Array, ""]:
    """The last layer's bias, where a model has one by that name; else its logit of a zero row."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    biases = [leaf for path, leaf in leaves if jax.tree_util.keystr(path).endswith("['bias']")]
    if biases:
        return jnp.sum(biases[-1])
    return problem.model.scores(params, jnp.zeros((1, len(problem.schema.features))))[0]


def adapting_models(
    learner: Learner, problem: Problem, config: Mapping[str, Any], tasks: Sequence[Task], seed: int
) -> Adapting:
    """What a learner would be charged that begins round t at theta, free of prices (Eq. 4).

    Departs from Eq. 4, which is silent about the comparator's lambda: it is 0.
    """
    (run_key,) = run_keys([seed])
    blank = learner.init(init_key(run_key))
    if not hasattr(blank.learned, "meta"):
        raise ConfigError(
            "expected a learner with a base learner to adapt by, got one without; "
            "leave out --adapting, or choose --learner fairsaoml for the run"
        )
    before, nothing = priors(tasks, config), jnp.zeros(len(problem.constraints))

    def adapted(theta: Params, t: Array, rows: Batch) -> tuple[Array, Array]:
        state = blank._replace(
            learned=blank.learned._replace(meta=PrimalDual(primal=theta, dual=nothing)),
            prior=part_of(before, t),
            round=t,
        )
        split = round_keys(run_key, t + 1).split
        figures = after_adapting(learner, problem, split, state, rows)
        return figures.loss, figures.violation

    return adapted
