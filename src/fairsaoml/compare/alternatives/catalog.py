"""The alternatives by name: where each is made, what it promises, what it needs."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, NamedTuple

from fairsaoml.compare.alternatives import alternative
from fairsaoml.compare.alternatives.alternative import Alternative
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.types import Schema


class Listing(NamedTuple):
    """How an alternative is made, and what a reader of its row must know."""

    module: str  # the library's; also the extra of fairsaoml that installs it
    factory: Callable[[Schema, int, SimpleNamespace], Alternative]
    words: str
    settings: Mapping[str, Any]  # with its library's defaults
    constraints: str = "none"  # what is kept fair, in our words
    random: bool = False  # whether seeds differ though the rows do not

    @property
    def package(self) -> str:
        """The library's name where packages are installed."""
        return "scikit-learn" if self.module == "sklearn" else self.module


def _reduction(moment: str, constraints: str) -> Listing:
    return Listing(
        "fairlearn",
        partial(alternative.exponentiated_gradient, moment),
        f"Fairlearn ExponentiatedGradient with {moment} over logistic regression, which decides "
        "at random among its classifiers",
        {**RECENT, "ratio": None, "balanced": False, "eps": 0.01, "C": 1.0},
        constraints=constraints,
        random=True,
    )


RECENT = {"window": 16, "every": 1}  # tasks: the whole past would hold every domain gone by
PAST = {"window": None, "every": 1, "balanced": False}
CATALOG: dict[str, Listing] = {
    "logistic-refit": Listing(
        "sklearn",
        alternative.logistic_refit,
        "scikit-learn LogisticRegression",
        {**PAST, "C": 1.0},
    ),
    "boosted-refit": Listing(
        "sklearn", alternative.boosted_refit, "scikit-learn HistGradientBoostingClassifier", PAST
    ),
    "sgd": Listing(
        "sklearn",
        alternative.sgd,
        "scikit-learn SGDClassifier of logistic loss, one pass over each task",
        {"alpha": 1e-4, "average": False, "learning_rate": "optimal", "eta0": 0.01},
        random=True,
    ),
    "expgrad": _reduction("DemographicParity", constraints="dp"),
    "expgrad-eo": _reduction("EqualizedOdds", constraints="eo"),
    "threshold": Listing(
        "fairlearn",
        alternative.threshold_optimizer,
        "Fairlearn ThresholdOptimizer for demographic parity over logistic regression, which "
        "needs the group of everyone it decides on, and sets a threshold for each",
        {**RECENT, "C": 1.0},
        constraints="dp",
        random=True,
    ),
    "river-logistic": Listing(
        "river",
        alternative.river_logistic,
        "River StandardScaler and LogisticRegression, row by row",
        {"learning_rate": 0.01, "l2": 0.0, "balanced": False},
    ),
    "river-forest": Listing(
        "river",
        alternative.river_forest,
        "River adaptive random forest (ARFClassifier), row by row",
        {"n_models": 10, "lambda_value": 6, "grace_period": 50},
        random=True,
    ),
}


def listing(name: str) -> Listing:
    """Return an alternative by name; ConfigError if it is unknown or not installed."""
    if name not in CATALOG:
        raise ConfigError(f"unknown alternative {name!r}; {closest(name, CATALOG)}")
    listing = CATALOG[name]
    try:
        version(listing.package)
    except PackageNotFoundError:
        raise ConfigError(
            f"expected {listing.package} to be installed for {name!r}; "
            f"pip install 'fairsaoml[{listing.module}]', or leave it out with --alternatives"
        ) from None
    return listing


def defaults(name: str) -> dict[str, Any]:
    """Return the settings an alternative takes, with its library's defaults.

    >>> defaults("logistic-refit")
    {'window': None, 'every': 1, 'balanced': False, 'C': 1.0}
    """
    return dict(CATALOG[name].settings)


def words(name: str, settings: Mapping[str, Any], schema: Schema) -> str:
    """Return what a reader of an alternative's row must know."""
    parts = [CATALOG[name].words]
    chosen = {**defaults(name), **settings}
    if "window" in chosen:
        window, every = chosen["window"], chosen["every"]
        often = "each round" if every == 1 else f"every {every} rounds"
        past = "all the past" if window is None else f"the last {window} tasks"
        parts.append(f"refitted {often} on {past}")
    first, *others = schema.attributes
    if others and CATALOG[name].constraints != "none":
        parts.append(f"fair by {first.name}, whatever the other attributes")
    return "; ".join(parts)


def make(name: str, schema: Schema, seed: int, settings: Mapping[str, Any]) -> Alternative:
    """Return an alternative that has learned nothing yet."""
    return CATALOG[name].factory(schema, seed, SimpleNamespace(**{**defaults(name), **settings}))
