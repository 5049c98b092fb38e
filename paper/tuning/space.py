"""The search space: which values each setting may take, by the setting's name.

The paper's grids (appendix, "Implementation Details and Hyperparameter Tuning") are eta1 and eta2
from 1e-4 to 1e3, N_meta from 20 to 100, 1 to 10 inner steps, delta from 10 to 100, lambda_0 from
1e-5 to 1e4. Here:

- delta lies below: delta (eta1 + eta2) lambda is what pulls the price of a violation back to 0, and
  from 10 on nothing is left of the price (D14). With delta and eta2 as here, a violation of .1 is
  worth a price of at least .75. So do the scales that set the prices of `fair-aogd` and `fair-glc`:
  the price of a violation of .1 is at least .28 in the first round of the one (over 6 R G) and its
  pull at least .55 in any round of the other (over 2 G^2);
- steps of theta are searched on a log scale where they work. With less than .01 little is learned:
  `mask-ftml` on the first 32 tasks of stop-and-frisk:BMS has a balanced accuracy of .50 with
  meta_primal_step .001, .52 with .01, .64 with .1. With more than .3 a network's run hangs on
  rounding: on stop-and-frisk:RQS two runs of `fairsaoml` that differ by 1e-7 in round 1 differ by
  1e-7 in round 20 with steps of .1, and by 1e-3 to 3e-2 with .5 and with 1;
- N_meta is thinned and inner steps stay at the default of 1: each value is a program of its own to
  compile, and its time grows with the value.

The notion of fairness is part of everyone's search, for all are judged on DP and EO.
The tolerance, and the scales that stand for steps in the competitors, are searched as well. One
dictionary serves every learner.
"""

from collections.abc import Container, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, get_args

from fairsaoml.core.config import LearnerConfig

__all__ = ["SPACES", "Between", "Choice", "Range", "Space", "space_for"]


class Between(NamedTuple):
    """Any number between two; with `log` on a log scale."""

    low: float
    high: float
    log: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value is in the range."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def widened(self, value: Any) -> "Between":
        """Return the range, extended to hold a value."""
        return self._replace(low=min(self.low, value), high=max(self.high, value))


class Choice(NamedTuple):
    """One of several values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Whether a value is in the range."""
        return value in self.values

    def widened(self, value: Any) -> "Choice":
        """Return the range, extended to hold a value."""
        return self if value in self.values else Choice((*self.values, value))


Range = Between | Choice
Space = Mapping[str, Range]

_STEP = Between(0.01, 0.3, log=True)
_DUAL_STEP = Between(0.001, 1.0, log=True)

SPACES: dict[str, Range] = {
    "meta_iterations": Choice((20, 40, 80)),  # N_meta
    "inner_primal_step": _STEP,
    "inner_dual_step": _DUAL_STEP,
    "meta_primal_step": _STEP,  # eta1
    "meta_dual_step": _DUAL_STEP,  # eta2
    "dual_damping": Choice((0.0, 1e-4, 1e-3, 1e-2, 0.1)),  # delta
    "initial_dual": Choice((0.0, *(10.0**power for power in range(-5, 5)))),  # lambda_0
    "constraints": Choice(("dp", "eo", "dp+eo")),
    "tolerance": Between(0.001, 0.1, log=True),
    # fair-aogd: the first step is R / G, the first damping 6 R G; fair-glc: H, G; aod, cbce: S / G
    "domain_bound": Between(0.01, 0.2, log=True),
    "gradient_bound": Between(0.03, 0.3, log=True),
    "decay": Between(0.0, 1.0),
    "convexity": Between(0.1, 10.0, log=True),
    "scale": Between(0.01, 3.0, log=True),
    "start": Choice(("fresh", "average")),  # cbce: where a new expert begins
}

# Read only where there are constraints.
OF_PRICES = ("inner_dual_step", "meta_dual_step", "dual_damping", "initial_dual")
OF_FAIRNESS = frozenset({*OF_PRICES, "constraints", "tolerance"})


def space_for(config: LearnerConfig, fixed: Container[str] = ()) -> dict[str, Range]:
    """Return what is searched of a learner's settings: those in `SPACES` that are not `fixed`.

    Each range is extended to hold the config's value, so that the config itself can be a trial.
    Without constraints, the settings that only they read are left out. A bound that may be none is
    a guard, such as the `gradient_bound` of `fairsaoml`, and stays as it is.

    >>> from fairsaoml.learners.aod import AODConfig
    >>> space_for(AODConfig(scale=5.0), fixed=["meta_iterations"])
    {'scale': Between(low=0.01, high=5.0, log=True)}
    """
    settings = {item.name for item in fields(config) if type(None) not in get_args(item.type)}
    priced = config.constraints != "none" and "tolerance" in settings  # not asked for a ratio
    unread = frozenset[str]() if priced else OF_FAIRNESS
    return {
        name: range.widened(getattr(config, name))
        for name, range in SPACES.items()
        if name in settings and name not in unread and name not in fixed
    }
