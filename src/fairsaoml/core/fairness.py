"""Constraints: smooth gaps between groups (Eq. 1), for any number of attributes and levels (D7).

A constraint compares the rows of one level of one attribute with the rows of all other known
levels, among the rows its notion speaks of: all (demographic parity), y = 1 (equal opportunity),
y = 0 (its other half, for equalized odds).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from jaxtyping import Bool, Float

from fairsaoml.core.arrays import Array, library
from fairsaoml.core.registry import Registry
from fairsaoml.core.scores import SCORES
from fairsaoml.core.types import Batch, Constraint, Schema

__all__ = [
    "NOTIONS",
    "Among",
    "Comparison",
    "Notion",
    "labels_of",
    "make_constraints",
    "sides",
]


def sides(
    batch: Batch, attribute: int, level: int, levels: int, label: int | None
) -> tuple[Float[Array, "row"], Float[Array, "row"]]:
    """Row weights of one level and of the other known levels; `unseen` is on neither side."""
    code = batch.group[:, attribute]
    counted: Bool[Array, row] = code < levels
    if label is not None:
        counted = counted & (batch.y == label)
    xp = library(batch.weight)
    one = xp.where(counted & (code == level), batch.weight, 0.0)
    other = xp.where(counted & (code != level), batch.weight, 0.0)
    return one, other


class Comparison(NamedTuple):
    """Two sides of a batch that a notion of fairness wants treated alike."""

    name: str
    sides: Callable[[Batch], tuple[Float[Array, "row"], Float[Array, "row"]]]  # row weights


Notion = Callable[[Schema], Sequence[Comparison]]


@dataclass(frozen=True)
class Among:
    """The notion that compares levels among the rows of each label, by the label's prefix.

    Label by label, attribute by attribute, level by level. Two levels of an attribute need one
    comparison, more need one each (D7).
    """

    labels: Mapping[str, int | None]

    def __call__(self, schema: Schema) -> list[Comparison]:
        return [
            Comparison(
                name=f"{prefix}[{name}={levels[level]}]",
                sides=partial(sides, attribute=index, level=level, levels=len(levels), label=label),
            )
            for prefix, label in self.labels.items()
            for index, (name, levels) in enumerate(schema.attributes)
            for level in (range(1, 2) if len(levels) == 2 else range(len(levels)))
        ]


NOTIONS: Registry[Notion] = Registry(
    "constraint",
    "fairsaoml.constraints",
    {
        "dp": Among({"dp": None}),
        "eop": Among({"tpr": 1}),
        "eo": Among({"tpr": 1, "fpr": 0}),
    },
    fits=callable,
    expected="a function of the schema",
)


def labels_of(notions: str) -> list[Mapping[str, int | None]]:
    """For each of the notions joined by +, the labels among whose rows it compares groups."""
    names = [] if notions == "none" else notions.split("+")
    return [notion.labels for name in names if isinstance(notion := NOTIONS.get(name), Among)]


def make_constraints(
    notions: str, schema: Schema, tolerance: float, score: str = "probability"
) -> tuple[Constraint, ...]:
    """The constraints of registered notions joined by +, in that order; "none" has none.

    >>> attributes = (("sex", ("f", "m")), ("race", ("x", "y", "z")))
    >>> [c.name for c in make_constraints("dp", Schema((), attributes), 0.02)]
    ['dp[sex=m]', 'dp[race=x]', 'dp[race=y]', 'dp[race=z]']
    >>> [c.name for c in make_constraints("eop+dp", Schema((), attributes[:1]), 0.02)]
    ['tpr[sex=m]', 'dp[sex=m]']
    """
    names = [] if notions == "none" else notions.split("+")
    comparisons = [comparison for name in names for comparison in NOTIONS.get(name)(schema)]
    # What two notions have in common is asked for once.
    once = {name: Constraint(name, sides, SCORES[score], tolerance) for name, sides in comparisons}
    return tuple(once.values())
