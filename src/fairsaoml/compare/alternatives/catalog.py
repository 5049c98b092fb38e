"""The alternatives by name: where each is made, what it promises, what it needs."""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from fairsaoml.compare.alternatives import alternative
from fairsaoml.compare.alternatives.alternative import Alternative
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.types import Schema

__all__ = ["CATALOG", "Listing", "defaults", "listing", "make", "words"]


class Listing(NamedTuple):
    """How an alternative is made, and what a reader of its row must know."""

    module: str  # the library's; also the extra of fairsaoml that installs it
    factory: Callable[..., Alternative]
    words: str
    fixed: Mapping[str, Any] = {}
    constraints: str = "none"  # what is kept fair, in our words
    random: bool = False  # whether seeds differ though the rows do not

    @property
    def package(self) -> str:
        """The library's name where packages are installed."""
        return "scikit-learn" if self.module == "sklearn" else self.module


def _reduction(moment: str, constraints: str) -> Listing:
    return Listing(
        "fairlearn",
        alternative.exponentiated_gradient,
        f"Fairlearn ExponentiatedGradient with {moment} over logistic regression, which decides "
        "at random among its classifiers",
        fixed={"moment": moment},
        constraints=constraints,
        random=True,
    )


CATALOG: dict[str, Listing] = {
    "logistic-refit": Listing(
        "sklearn", alternative.logistic_refit, "scikit-learn LogisticRegression"
    ),
    "boosted-refit": Listing(
        "sklearn", alternative.boosted_refit, "scikit-learn HistGradientBoostingClassifier"
    ),
    "sgd": Listing(
        "sklearn",
        alternative.sgd,
        "scikit-learn SGDClassifier of logistic loss, one pass over each task",
        random=True,
    ),
    "expgrad": _reduction("DemographicParity", constraints="dp"),
    "expgrad-eo": _reduction("EqualizedOdds", constraints="eo"),
    "threshold": Listing(
        "fairlearn",
        alternative.threshold_optimizer,
        "Fairlearn ThresholdOptimizer for demographic parity over logistic regression, which "
        "needs the group of everyone it decides on, and sets a threshold for each",
        constraints="dp",
        random=True,
    ),
    "river-logistic": Listing(
        "river",
        alternative.river_logistic,
        "River StandardScaler and LogisticRegression, row by row",
    ),
    "river-forest": Listing(
        "river",
        alternative.river_forest,
        "River adaptive random forest (ARFClassifier), row by row",
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
    listing = CATALOG[name]
    return {
        p.name: p.default
        for p in inspect.signature(listing.factory).parameters.values()
        if p.kind == p.KEYWORD_ONLY and p.name not in listing.fixed
    }


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
    return CATALOG[name].factory(schema, seed, **CATALOG[name].fixed, **settings)
