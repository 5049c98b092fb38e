"""Confidence intervals for gaps between groups that stay defined however small a group is.

Two groups' rates are compared by score intervals, which need no correction at 0 of n or n of n:
their difference by Newcombe's hybrid of two Wilson intervals, their ratio by Koopman's, all ratios
that a score test does not reject. Both are among those that Fagerland, Lydersen and Laake (2015)
recommend for two independent proportions.

Fairlearn's gap is that of the two most different groups, and which two these are is itself found
in the data. So every pair has its interval, at a level corrected for their number (Bonferroni):
when all of them hold, the largest gap lies between the largest lower end and the largest upper
end. Of a group without rows nothing is known, so its gaps may be anything: that widens the one
end only, and what is known of the other groups still stands.

Over several windows of time a gap may change sign, and a pool of them would let it cancel. The
typical ratio is that of the root mean square of the windows' log ratios, with what chance alone
would show taken off; but what is taken off is an average, and may be all of a gap that every window
has. So it is never above the pooled ratio, which gaps of opposite signs alone can flatter: that of
Mantel and Haenszel, the ratio of the sums if each window had the groups in equal shares, so that
groups who only came at different times do not differ. With z_w a window's log ratio in its
standard errors (the usual ones, of Katz et al. 1978), T = sum z_w^2 over k windows is noncentral
chi-square, and sqrt(T - (k - 1) / 2) nearly normal with variance 1 around
sqrt(noncentrality + (k - 1) / 2) (Sankaran, 1959), which is inverted for the interval.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

from fairsaoml.core.errors import ConfigError

PRECISION = 1e-12  # to which an end of Koopman's interval is found
MOST_STEPS = 80  # of the search for it; ten are enough


class Share(NamedTuple):
    """A share: `part` of `whole` rows."""

    part: int
    whole: int

    @property
    def rate(self) -> float:
        """`part / whole`; the group must have rows."""
        return self.part / self.whole


class Interval(NamedTuple):
    """From low to high, both included."""

    low: float
    high: float


def wilson(share: Share, level: float = 0.95) -> Interval:
    """All rates that a score test does not reject (Wilson, 1927).

    >>> low, high = wilson(Share(0, 10))
    >>> print(f"{low:.4f} {high:.4f}")  # nobody of ten: still up to 28 %
    0.0000 0.2775
    """
    z = _deviations(level)
    part, whole = share
    if not whole:
        return Interval(low=0.0, high=1.0)
    middle = part + z * z / 2
    width = z * math.sqrt(part * (whole - part) / whole + z * z / 4)
    total = whole + z * z
    # The ends at 0 and n are exactly 0 and 1; rounding must not say otherwise.
    return Interval(
        low=(middle - width) / total if part else 0.0,
        high=(middle + width) / total if part < whole else 1.0,
    )


def difference_interval(one: Share, other: Share, level: float = 0.95) -> Interval:
    """For the first rate minus the second (Newcombe, 1998, method 10).

    >>> low, high = difference_interval(Share(56, 70), Share(48, 80))  # Newcombe's first example
    >>> print(f"{low:.4f} {high:.4f}")
    0.0524 0.3339
    """
    if not (one.whole and other.whole):
        return Interval(low=-1.0, high=1.0)
    first, second = wilson(one, level), wilson(other, level)
    difference = one.rate - other.rate
    return Interval(
        low=difference - math.hypot(one.rate - first.low, second.high - other.rate),
        high=difference + math.hypot(first.high - one.rate, other.rate - second.low),
    )


def ratio_interval(one: Share, other: Share, level: float = 0.95) -> Interval:
    """For the first rate over the second (Koopman, 1984); the upper end may be infinity.

    >>> low, high = ratio_interval(Share(36, 40), Share(16, 80))  # Koopman's own example
    >>> print(f"{low:.2f} {high:.2f}")
    2.94 7.15
    >>> ratio_interval(Share(0, 10), Share(0, 10))
    Interval(low=0.0, high=inf)
    """
    # The same hypothesis, the same test: the lower end is the other ratio's upper end, inverted.
    return Interval(
        low=1 / _highest_ratio(other, one, level), high=_highest_ratio(one, other, level)
    )


def largest_difference_interval(groups: Sequence[Share], level: float = 0.95) -> Interval:
    """For the highest rate of some groups minus the lowest; of less than two it may be anything.

    >>> low, high = largest_difference_interval([Share(9, 10), Share(3, 10)])
    >>> print(f"{low:.4f} {high:.4f}")
    0.1705 0.8090
    >>> low, high = largest_difference_interval([Share(9, 10), Share(3, 10), Share(0, 0)])
    >>> print(f"{low:.4f} {high:.4f}")  # the third group may be like any of them, or quite other
    0.1705 1.0000
    """
    intervals = _of_pairs(groups, difference_interval, level)
    return Interval(
        low=max((max(0.0, low, -high) for low, high in intervals), default=0.0),
        high=max((max(high, -low) for low, high in intervals), default=1.0),
    )


def smallest_ratio_interval(groups: Sequence[Share], level: float = 0.95) -> Interval:
    """For the lowest rate of some groups over the highest: within 0 and 1.

    >>> low, high = smallest_ratio_interval([Share(36, 40), Share(16, 80)])
    >>> print(f"{low:.4f} {high:.4f}")
    0.1398 0.3402
    """
    intervals = _of_pairs(groups, ratio_interval, level)
    # Where a pair may be equal, its ratio may be 1.
    highs = (high if high < 1 else 1 / low if low > 1 else 1.0 for low, high in intervals)
    return Interval(
        low=min((min(low, 1 / high) for low, high in intervals), default=0.0),
        high=min(highs, default=1.0),
    )


def typical_ratio(
    windows: Sequence[tuple[Share, Share]], level: float = 0.95
) -> tuple[float | None, Interval]:
    """Two groups' typical ratio over windows of time, at most 1, and its interval.

    A window says nothing if a group has no row in it, or if nobody is selected. If none says
    anything, the ratio is None; a single one has Koopman's interval.

    >>> ratio, (low, high) = typical_ratio([(Share(40, 100), Share(50, 100))])
    >>> print(f"{ratio:.2f} {low:.2f} {high:.2f}")
    0.80 0.58 1.00
    >>> low_rate, high_rate = Share(400, 1000), Share(500, 1000)
    >>> back_and_forth = [(low_rate, high_rate), (high_rate, low_rate)]  # pooled: equal
    >>> ratio, (low, high) = typical_ratio(back_and_forth)
    >>> print(f"{ratio:.2f} {low:.2f} {high:.2f}")
    0.80 0.75 0.86
    >>> ratio, (low, high) = typical_ratio([(Share(46, 100), Share(50, 100))] * 4)  # pooled: .92
    >>> print(f"{ratio:.2f} {low:.2f} {high:.2f}")
    0.92 0.81 1.00
    """
    z = _deviations(level)
    telling = [(a, b) for a, b in windows if a.whole and b.whole and (a.part or b.part)]
    if not telling:
        return None, Interval(low=0.0, high=1.0)
    if len(telling) == 1:
        rates = sorted(share.rate for share in telling[0])
        return rates[0] / rates[1], smallest_ratio_interval(telling[0], level)
    known = [_log_ratio(*pair) for pair in telling]
    precision = sum(1 / variance for _, variance in known)
    freedom = (len(known) - 1) / 2
    # Windows that differ by less than chance are no proof of equality: they count as by chance.
    total = sum(log * log / variance for log, variance in known)
    size = math.sqrt(max(total - freedom, freedom))

    def ratio(size: float) -> float:
        return math.exp(-math.sqrt(max(size * size - freedom, 0.0) / precision))

    typical = min(ratio(size), _pooled_ratio(telling))
    return typical, Interval(low=min(ratio(size + z), typical), high=ratio(max(size - z, 0.0)))


def _pooled_ratio(windows: Sequence[tuple[Share, Share]]) -> float:
    """The ratio over all windows, at most 1, weighted as Mantel and Haenszel (1959) do.

    >>> seldom_together = [(Share(40, 100), Share(5, 10)), (Share(8, 10), Share(100, 100))]
    >>> print(f"{_pooled_ratio(seldom_together):.2f}")  # .8 in both windows
    0.80
    """
    one = sum(a.part * b.whole / (a.whole + b.whole) for a, b in windows)
    other = sum(b.part * a.whole / (a.whole + b.whole) for a, b in windows)
    return min(one, other) / max(one, other)


def _log_ratio(one: Share, other: Share) -> tuple[float, float]:
    """The logarithm of a ratio of rates, and its variance; always finite."""
    # Half a case is added where all or none of a group would make one of them infinite or zero.
    edge = any(share.part in (0, share.whole) for share in (one, other))
    (a, n), (b, m) = ((part + 0.5 * edge, whole + 1.0 * edge) for part, whole in (one, other))
    return math.log(a / n * m / b), 1 / a - 1 / n + 1 / b - 1 / m


def _of_pairs(
    groups: Sequence[Share], interval_of: Callable[..., Interval], level: float
) -> list[Interval]:
    """The intervals of all pairs, which hold together at `level` (Bonferroni)."""
    # A pair with an empty group has an interval that cannot fail, so it costs the others nothing.
    pairs = math.comb(sum(group.whole > 0 for group in groups), 2)
    each = 1 - (1 - level) / max(pairs, 1)
    return [interval_of(*pair, each) for pair in combinations(groups, 2)]


def _deviations(level: float) -> float:
    """How many standard deviations hold so much of the normal distribution.

    >>> print(f"{_deviations(0.95):.4f}")
    1.9600
    """
    if not 0 < level < 1:
        raise ConfigError(f"expected a level between 0 and 1, got {level}; .95 is usual")
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=4096)  # the blocks and windows of a summary ask for the same pairs
def _highest_ratio(one: Share, other: Share, level: float) -> float:
    """The largest ratio of the first rate to the second that a score test does not reject."""
    z = _deviations(level)
    (a, n), (b, m) = one, other
    if not (n and b):
        return math.inf

    def above(ratio: float) -> float:
        """How far the score is above -z: of `first = ratio * second`, in standard deviations."""
        # The second rate's likeliest value if so: the smaller root of a square equation.
        half = (ratio * (n + b) + a + m) / 2
        second = (a + b) / (half + math.sqrt(max(half * half - ratio * (n + m) * (a + b), 0.0)))
        first = min(ratio * second, 1.0)
        variance = first * (1 - first) / n + ratio * ratio * second * (1 - second) / m
        distance = a / n - ratio * b / m
        return z + (
            distance / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, distance)
        )

    # The score falls as the ratio grows, from 0 at the ratio observed. Where it is rejected is near
    # the end of the interval of Katz et al.
    kept, inside = a / n / (b / m), z
    rejected = max(kept, 1 / (n * m)) * math.exp(1.05 * z * math.sqrt(_log_ratio(one, other)[1]))
    while (outside := above(rejected)) > 0:
        kept, inside = rejected, outside
        rejected *= 2
    # Where a straight line between both would cross: regula falsi, of the Illinois kind.
    moved = ""
    for _ in range(MOST_STEPS):
        least = PRECISION / 2 * rejected
        if rejected - kept <= 2 * least:
            break
        fall = inside - outside
        share = inside / fall if math.isfinite(fall) else 0.5
        place = min(max(kept + share * (rejected - kept), kept + least), rejected - least)
        value = above(place)
        if value > 0:
            kept, inside = place, value
            outside *= 0.5 if moved == "kept" else 1.0
            moved = "kept"
        else:
            rejected, outside = place, value
            inside *= 0.5 if moved == "rejected" else 1.0
            moved = "rejected"
    return kept
