"""When a row is decided positive: asked for, by costs, or chosen from a table's first task.

Of a rare label hardly any probability is above one half, and a run that decides there says yes to
nobody. A label of 30 to 70 % of the first task is decided at 0.5, another at the base rate.
"""

from fairsaoml.core.errors import ConfigError

__all__ = ["by_costs", "decision_words", "suggested_decision"]

EVEN = (0.3, 0.7)  # shares of positive labels between which one half is a threshold
LARGEST_COST = 1e6
SURE = (0.001, 0.999)  # the thresholds that a learner takes


def suggested_decision(base_rate: float) -> str:
    """The decision rule for a label that so many rows of the first task have.

    >>> suggested_decision(0.45), suggested_decision(0.13)
    ('accuracy', 'balanced')
    """
    return "accuracy" if EVEN[0] <= base_rate <= EVEN[1] else "balanced"


def by_costs(false_positive: float | None, false_negative: float | None) -> float:
    """The probability above which a positive decision costs less; a cost not given is 1.

    >>> by_costs(4, None)
    0.8
    """
    costs = [1.0 if cost is None else cost for cost in (false_positive, false_negative)]
    for name, cost in zip(("false-positive", "false-negative"), costs, strict=True):
        if not 0 < cost <= LARGEST_COST:
            raise ConfigError(
                f"--cost-{name} must be above 0 and at most {LARGEST_COST:g}, got {cost:g}; "
                "say how many times worse it is than the other error"
            )
    low, high = SURE
    return min(max(costs[0] / (costs[0] + costs[1]), low), high)


def decision_words(decision: str | float, base_rate: float) -> str:
    """What a run says of its decision rule in its first line.

    >>> decision_words("balanced", 0.13)
    'decides at the base rate; 13 % of the first task are positive (--decision says otherwise)'
    """
    at = {"accuracy": "probability 0.5", "balanced": "the base rate"}
    rule = at[decision] if isinstance(decision, str) else f"probability {decision:.3g}"
    share = f"{100 * base_rate:.0f} % of the first task are positive"
    return f"decides at {rule}; {share} (--decision says otherwise)"
