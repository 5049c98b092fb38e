"""Fairlearn: reductions and post-processing over logistic regression, refitted on a window.

Of several protected attributes the first is the one kept fair. A group with one class only in the
window cannot be held against the others there: its rows are decided, but not fitted on.
"""

import warnings
from typing import Any

import numpy as np

from fairsaoml.compare.alternatives.alternative import Alternative, Decide, Decisions, Fit, Refitted
from fairsaoml.core.types import Schema

__all__ = ["exponentiated_gradient", "threshold_optimizer"]

WINDOW = 16  # tasks: the whole past would hold every domain gone by
SEEDS = 2**32  # how many seeds NumPy's older generators know


def exponentiated_gradient(
    schema: Schema,
    seed: int,
    *,
    moment: str = "DemographicParity",
    window: int = WINDOW,
    every: int = 1,
    ratio: float | None = None,
    balanced: bool = False,
    eps: float = 0.01,
    C: float = 1.0,
) -> Alternative:
    """`ExponentiatedGradient`: each row is decided by one of several classifiers, at random.

    `ratio` is asked for instead of Fairlearn's default, a difference of .01; with `balanced` both
    classes weigh the same in its error.
    """
    from fairlearn import reductions

    random = np.random.default_rng(seed)

    def fit(x: Any, y: Any, group: Any) -> Decide:
        positive = float(np.mean(y))
        costs = {"fp": 0.5 / (1 - positive), "fn": 0.5 / positive} if balanced else None
        model = reductions.ExponentiatedGradient(
            _logistic(C),
            getattr(reductions, moment)(ratio_bound=ratio),
            objective=reductions.ErrorRate(costs=costs),
            eps=eps,
        ).fit(x, y, sensitive_features=group)
        return lambda x, group: model.predict(x, random_state=_seed(random)).astype(int)

    return Refitted(_of_first_attribute(fit, schema, C), window=window, every=every)


def threshold_optimizer(
    schema: Schema, seed: int, *, window: int = WINDOW, every: int = 1, C: float = 1.0
) -> Alternative:
    """`ThresholdOptimizer`: one threshold per group, so it must know each row's group."""
    from fairlearn.postprocessing import ThresholdOptimizer

    random = np.random.default_rng(seed)

    def fit(x: Any, y: Any, group: Any) -> Decide:
        model = ThresholdOptimizer(estimator=_logistic(C)).fit(x, y, sensitive_features=group)
        known = np.unique(group)

        def decide(x: Any, group: Any) -> Decisions:
            decisions = np.asarray(
                model.predict(x, sensitive_features=group, random_state=_seed(random)), int
            )
            strangers = ~np.isin(group, known)
            if strangers.any():
                warnings.warn(
                    f"{np.count_nonzero(strangers)} rows of groups with no threshold: "
                    "decided by the plain classifier",
                    stacklevel=2,
                )
                decisions[strangers] = model.estimator_.predict(x[strangers])
            return decisions

        return decide

    return Refitted(_of_first_attribute(fit, schema, C), window=window, every=every)


def _of_first_attribute(fit: Fit, schema: Schema, C: float) -> Fit:
    """Restrict a fit to groups that have both classes; fit without groups if fewer than two do."""
    levels = schema.attributes[0].levels

    def fit_comparable(x: Any, y: Any, group: Any) -> Decide:
        first = group[:, 0]
        comparable = [code for code in range(len(levels)) if len(np.unique(y[first == code])) == 2]
        if len(comparable) < 2:
            warnings.warn("no two groups have both classes: the fit is a plain one", stacklevel=2)
            plain = _logistic(C).fit(x, y)
            return lambda x, group: plain.predict(x)
        kept = np.isin(first, comparable)
        if not kept.all():
            warnings.warn(
                f"{np.count_nonzero(~kept)} rows of groups with one class were not fitted on",
                stacklevel=2,
            )
        # Doubles: Fairlearn writes them into a pandas Series of the scores' type, and pandas 3
        # refuses to round them.
        decide = fit(x[kept].astype(float), y[kept], first[kept])
        return lambda x, group: decide(x.astype(float), group[:, 0])

    return fit_comparable


def _logistic(C: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C)


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(SEEDS))
