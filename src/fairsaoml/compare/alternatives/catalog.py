"""The alternatives by name: where each is made, what it promises, what it needs."""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from fairsaoml.compare.alternatives.alternative import Alternative
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.types import Schema

__all__ = ["CATALOG", "Listing", "defaults", "listing", "make", "words"]


class Listing(NamedTuple):
    """Where an alternative is made, and what a reader of its row must know."""

    module: str  # here; the library it wraps has the same name
    factory: str
    words: str
    package: str = "scikit-learn"
    extra: str | None = None  # of fairsaoml, that installs the package
    fixed: Mapping[str, Any] = {}
    constraints: str = "none"  # what is kept fair, in our words
    random: bool = False  # whether seeds differ though the rows do not


def _reduction(moment: str, constraints: str) -> Listing:
    return Listing(
        "fairlearn",
        "exponentiated_gradient",
        f"Fairlearn ExponentiatedGradient with {moment} over logistic regression, which decides "
        "at random among its classifiers",
        package="fairlearn",
        extra="fairlearn",
        fixed={"moment": moment},
        constraints=constraints,
        random=True,
    )


CATALOG: dict[str, Listing] = {
    "logistic-refit": Listing("sklearn", "logistic_refit", "scikit-learn LogisticRegression"),
    "boosted-refit": Listing(
        "sklearn", "boosted_refit", "scikit-learn HistGradientBoostingClassifier"
    ),
    "sgd": Listing(
        "sklearn",
        "sgd",
        "scikit-learn SGDClassifier of logistic loss, one pass over each task",
        random=True,
    ),
    "expgrad": _reduction("DemographicParity", constraints="dp"),
    "expgrad-eo": _reduction("EqualizedOdds", constraints="eo"),
    "threshold": Listing(
        "fairlearn",
        "threshold_optimizer",
        "Fairlearn ThresholdOptimizer for demographic parity over logistic regression, which "
        "needs the group of everyone it decides on, and sets a threshold for each",
        package="fairlearn",
        extra="fairlearn",
        constraints="dp",
        random=True,
    ),
    "river-logistic": Listing(
        "river",
        "logistic",
        "River StandardScaler and LogisticRegression, row by row",
        package="river",
        extra="river",
    ),
    "river-forest": Listing(
        "river",
        "adaptive_forest",
        "River adaptive random forest (ARFClassifier), row by row",
        package="river",
        extra="river",
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
            f"pip install 'fairsaoml[{listing.extra}]', or leave it out with --alternatives"
        ) from None
    return listing


def defaults(name: str) -> dict[str, Any]:
    """Return the settings an alternative takes, with its library's defaults.

    >>> defaults("logistic-refit")
    {'window': None, 'every': 1, 'balanced': False, 'C': 1.0}
    """
    parameters = inspect.signature(_factory(name)).parameters.values()
    fixed = CATALOG[name].fixed
    return {
        p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY and p.name not in fixed
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
    return _factory(name)(schema, seed, **CATALOG[name].fixed, **settings)


def _factory(name: str) -> Callable[..., Alternative]:
    module, factory, *_ = CATALOG[name]
    return getattr(import_module(f"fairsaoml.compare.alternatives.{module}"), factory)
