"""Fairlearn's MetricFrame, kept up to date: batches come in, batches go out again.

What is kept is six counts per group (`evaluate.metrics`), never rows: an update costs the batch and
a question costs the groups, however long the stream. There are two ways of asking.

- `overall`, `by_group`, `group_min`, `group_max`, `difference` and `ratio` have Fairlearn's names,
  shapes and values: those of a MetricFrame of all the rows together. Its conventions come with
  them. A rate of no rows is 0 (`true_positive_rate` where nobody has y = 1), a group that has no
  rows is NaN, comparisons pass over it. `undefined` names each such entry and says why.
- `difference_interval`, `ratio_interval` and `figures` are ours, without conventions: what is
  undefined is None with its reason, too few rows are marked, and a gap comes with an interval.

Answers about several metrics are pandas objects, as Fairlearn's are. Where pandas is not installed,
one metric at a time, `counts` and all that is ours still work.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from operator import sub
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.evaluate.confidence import largest_difference_interval, smallest_ratio_interval
from fairsaoml.evaluate.metrics import (
    METRICS,
    MINIMUM_COUNT,
    ODDS,
    RATES,
    Counts,
    compare,
    figures,
    lacks,
    metric_of,
    summed,
)
from fairsaoml.streams.table.sensitive import sensitive_columns

Method = Literal["between_groups", "to_overall"]
Group = tuple[Hashable, ...]  # one value for each sensitive column


class GapInterval(NamedTuple):
    """A gap between groups, and how sure one can be of it."""

    value: float | None  # of the rows that were seen; None where `undefined` says why
    low: float  # of what these rows are a sample of; defined, however few they are
    high: float
    undefined: str = ""
    insufficient: str = ""  # in which groups too little was seen to make much of the value


class StreamingMetric:
    """Metrics by group over a stream of batches.

    `metrics` is one name of `METRICS` or several. With one, answers are numbers and `by_group` is
    a Series; with several, Series and a DataFrame. With `window`, only the last so many batches
    count. Labels may be any two values, `pos_label` says which is positive. Several sensitive
    columns make one group of each combination. A group once seen keeps its place, also when none
    of its rows are left.

    Not here: sample weights, control features, and metrics that are no function of counts.

    >>> metric = StreamingMetric("selection_rate")
    >>> metric.update([1, 0, 1], [1, 1, 0], sensitive_features=["f", "f", "m"])
    >>> metric.update([0, 1], [1, 0], sensitive_features=["m", "m"])
    >>> metric.by_group
    sensitive_feature_0
    f    1.000000
    m    0.333333
    Name: selection_rate, dtype: float64
    >>> print(f"{metric.overall:.2f} {metric.difference():.2f} {metric.ratio():.2f}")
    0.60 0.67 0.33
    >>> metric.revert([0, 1], [1, 0], sensitive_features=["m", "m"])
    >>> metric.ratio()
    0.0
    >>> metric.ratio_interval().insufficient
    "selection_rate: fewer than 10 positives in 'f', 'm'"
    """

    def __init__(
        self,
        metrics: str | Sequence[str] = ("accuracy", "selection_rate"),
        *,
        window: int | None = None,
        pos_label: Any = 1,
    ) -> None:
        self._single = isinstance(metrics, str)
        self._metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        for name in self._metrics:
            if name not in METRICS:
                raise ConfigError(f"unknown metric {name!r}; {closest(str(name), METRICS)}")
        if not self._metrics:
            raise ConfigError(f"expected a metric or several, got none; {closest('', METRICS)}")
        if window is not None and (not isinstance(window, int) or window < 1):
            raise ConfigError(
                f"expected a window of 1 batch or more, got {window!r}; use None to count them all"
            )
        self._columns: tuple[str, ...] = ()  # known from the first batch on
        self._by_group: dict[Group, Counts] = {}
        self._pos_label = pos_label
        self._other_labels: frozenset[Any] = frozenset()  # at most one
        self._window = None if window is None else deque[dict[Group, Counts]](maxlen=window)

    def update(self, y_true: Any, y_pred: Any, *, sensitive_features: Any) -> None:
        """Add a batch; with a window, the oldest batch beyond it is removed.

        Args:
            y_true: The labels, one per row.
            y_pred: The decisions, one per row.
            sensitive_features: The rows' groups: a list, an array, a series, a dataframe or a
                dictionary of columns.

        Raises:
            DataError: The lengths differ, a value is missing, or a third label turns up.
        """
        batch = self._count(y_true, y_pred, sensitive_features)
        if self._window is not None:
            if len(self._window) == self._window.maxlen:
                self._by_group = _less(self._by_group, self._window[0])
            self._window.append(batch)
        for group, counts in batch.items():
            self._by_group[group] = summed([self._by_group.get(group, Counts()), counts])

    def revert(self, y_true: Any, y_pred: Any, *, sensitive_features: Any) -> None:
        """Remove rows that were added before: all of them, or none and an error.

        The arguments are those of `update`.

        Raises:
            ConfigError: There is a window, which removes batches by itself.
            DataError: Some of these rows were never added.
        """
        if self._window is not None:
            raise ConfigError(
                "expected no revert where window= is given, which takes batches out by itself; "
                "use window=None to do it by hand"
            )
        self._by_group = _less(self._by_group, self._count(y_true, y_pred, sensitive_features))

    @property
    def counts(self) -> dict[Any, Counts]:
        """Six counts of every group seen; a group of several columns is a tuple."""
        return {_named(group): self._by_group[group] for group in _in_order(self._by_group)}

    @property
    def overall(self) -> Any:
        """Each metric of all rows."""
        total = summed(self._by_group.values())
        return self._answer(lambda name: metric_of(name, total))

    @property
    def by_group(self) -> Any:
        """Each metric of each group; of several columns, each combination of their values."""
        pandas = _pandas()
        groups = self._groups()
        if len(self._columns) == 1:
            index = pandas.Index([group[0] for group in groups], name=self._columns[0])
        elif self._columns:
            index = pandas.MultiIndex.from_tuples(groups, names=self._columns)
        else:
            index = pandas.Index([])
        table = pandas.DataFrame({name: self._values(name) for name in self._metrics}, index)
        if self._single:
            return table[self._metrics[0]]
        return table if set(self._metrics) == {"count"} else table.astype(float)

    def group_min(self) -> Any:
        """Each metric of the group where it is lowest."""
        return self._answer(lambda name: min(self._known(name), default=math.nan))

    def group_max(self) -> Any:
        """Each metric of the group where it is highest."""
        return self._answer(lambda name: max(self._known(name), default=math.nan))

    def difference(self, method: Method = "between_groups") -> Any:
        """Each metric's largest difference of two groups, or of a group and all: 0 is fair.

        Args:
            method: "between_groups", or "to_overall": each group against all rows.

        Returns:
            A number for one metric, a Series for several; NaN where no group has rows.
        """
        return self._answer(lambda name: self._difference(name, method))

    def ratio(self, method: Method = "between_groups") -> Any:
        """Each metric's smallest ratio of two groups, or of a group and all: 1 is fair.

        `method` and what is returned are those of `difference`.
        """
        return self._answer(lambda name: self._ratio(name, method))

    def demographic_parity_difference(self, method: Method = "between_groups") -> float:
        """The difference of selection rates, whichever metrics were asked for."""
        return self._difference("selection_rate", method)

    def demographic_parity_ratio(self, method: Method = "between_groups") -> float:
        """The ratio of selection rates."""
        return self._ratio("selection_rate", method)

    def equalized_odds_difference(self, method: Method = "between_groups") -> float:
        """The larger one of two differences: of true and of false positive rates."""
        return max(self._difference(name, method) for name in ODDS)

    def equalized_odds_ratio(self, method: Method = "between_groups") -> float:
        """The smaller one of two ratios: of true and of false positive rates."""
        return min(self._ratio(name, method) for name in ODDS)

    @property
    def undefined(self) -> list[str]:
        """Why an entry of `by_group` or `overall` is NaN, or rests on no rows.

        >>> metric = StreamingMetric("true_positive_rate")
        >>> metric.update([1, 0], [1, 0], sensitive_features=["f", "m"])
        >>> float(metric.by_group["m"]), metric.undefined
        (0.0, ["true_positive_rate of 'm': no row with y = 1"])
        """
        places = {f"of {_named(g)!r}": self._by_group.get(g, Counts()) for g in self._groups()}
        places["overall"] = summed(self._by_group.values())
        return [
            f"{name} {place}: {reason}"
            for name in self._metrics
            for place, counts in places.items()
            if (reason := lacks(name, counts))
        ]

    def figures(self, *, minimum_count: int = MINIMUM_COUNT) -> dict[str, Any]:
        """A round's figures (`evaluate.metrics.figures`), each sensitive column by itself."""
        margins: dict[str, dict[str, Counts]] = {column: {} for column in self._columns}
        for group, counts in self._by_group.items():
            for column, value in zip(self._columns, map(str, group), strict=True):
                margins[column][value] = summed([margins[column].get(value, Counts()), counts])
        return figures(margins, minimum_count=minimum_count)

    def difference_interval(
        self, metric: str | None = None, *, level: float = 0.95, minimum_count: int = MINIMUM_COUNT
    ) -> GapInterval:
        """The highest group's rate minus the lowest's, and an interval for it.

        Args:
            metric: Which rate; may be left out where there is only one metric.
            level: The probability with which the interval holds, for all pairs of groups at once.
            minimum_count: A group with fewer rows makes the value `insufficient`.

        >>> metric = StreamingMetric("selection_rate")
        >>> f, m = [1] * 9 + [0] * 1, [1] * 3 + [0] * 7
        >>> metric.update([0] * 20, f + m, sensitive_features=["f"] * 10 + ["m"] * 10)
        >>> gap = metric.difference_interval()
        >>> print(f"{gap.value:.2f}, between {gap.low:.2f} and {gap.high:.2f}")
        0.60, between 0.17 and 0.81
        """
        return self._gap(metric, level, minimum_count, ratio=False)

    def ratio_interval(
        self, metric: str | None = None, *, level: float = 0.95, minimum_count: int = MINIMUM_COUNT
    ) -> GapInterval:
        """The lowest group's rate over the highest's, and an interval for it.

        The arguments are those of `difference_interval`, but `minimum_count` is one of hits: a rate
        that rests on a few may be any multiple of another.

        >>> metric = StreamingMetric("selection_rate")
        >>> metric.update([0] * 5, [0] * 5, sensitive_features=list("ffmmm"))
        >>> gap = metric.ratio_interval()
        >>> gap.value, gap.low, gap.high, gap.undefined
        (None, 0.0, 1.0, 'selection_rate: 0/0, no positives in any group')
        """
        return self._gap(metric, level, minimum_count, ratio=True)

    def _gap(
        self, metric: str | None, level: float, minimum_count: int, *, ratio: bool
    ) -> GapInterval:
        metric = self._metrics[0] if metric is None and len(self._metrics) == 1 else metric
        if metric not in RATES:
            raise ConfigError(
                f"expected a rate for an interval, got {metric!r}; known: {', '.join(RATES)}"
            )
        rate = RATES[metric]
        shares = {group: rate.share(counts) for group, counts in self.counts.items()}
        smallest, largest, undefined = compare(shares, rate)
        value = smallest if ratio else largest
        if value is None and not undefined:
            undefined = f"0/0, no {rate.hits} in any group"
        interval_of = smallest_ratio_interval if ratio else largest_difference_interval
        interval = interval_of(list(shares.values()), level)
        seen = {group: share.part if ratio else share.whole for group, share in shares.items()}
        few = ", ".join(repr(group) for group, number in seen.items() if number < minimum_count)
        what = rate.hits if ratio else rate.row.replace("row", "rows", 1)
        return GapInterval(
            value,
            *interval,
            undefined=f"{metric}: {undefined}" if undefined else "",
            insufficient=f"{metric}: fewer than {minimum_count} {what} in {few}" if few else "",
        )

    def _groups(self) -> list[Group]:
        """Every combination of the values seen in each column, in order."""
        if not self._by_group:
            return []
        return list(product(*map(_in_order, map(set, zip(*self._by_group, strict=True)))))

    def _values(self, name: str) -> list[float]:
        """A metric by group, in the order of `_groups`."""
        return [metric_of(name, self._by_group.get(group, Counts())) for group in self._groups()]

    def _known(self, name: str) -> list[float]:
        """A metric of the groups that have rows."""
        return [value for value in self._values(name) if not math.isnan(value)]

    def _difference(self, name: str, method: Method) -> float:
        reference = self._reference(name, method, min)
        return max((abs(value - reference) for value in self._known(name)), default=math.nan)

    def _ratio(self, name: str, method: Method) -> float:
        reference = self._reference(name, method, max)
        pairs = [sorted((value, reference)) for value in self._known(name) if reference]
        return min((low / high for low, high in pairs), default=math.nan)

    def _reference(self, name: str, method: Method, extreme: Callable[..., float]) -> float:
        """What groups are compared with: the lowest or highest of them, or all rows."""
        if method == "between_groups":
            return extreme(self._known(name), default=math.nan)
        if method == "to_overall":
            return metric_of(name, summed(self._by_group.values()))
        raise ConfigError(f"expected method 'between_groups' or 'to_overall', got {method!r}")

    def _answer(self, ask: Callable[[str], float]) -> Any:
        """A number about one metric, a pandas Series about several."""
        if self._single:
            return ask(self._metrics[0])
        return _pandas().Series({name: ask(name) for name in self._metrics})

    def _count(self, y_true: Any, y_pred: Any, sensitive_features: Any) -> dict[Group, Counts]:
        """A batch's counts by group. Only a batch without fault leaves a trace in `self`."""
        columns = sensitive_columns(sensitive_features)
        names = self._columns or tuple(columns)
        if set(names) != columns.keys():
            raise DataError(
                f"expected the sensitive columns {', '.join(names)} of the first batch, got "
                f"{', '.join(columns)}; name them alike in every batch"
            )
        values = [_plain(columns[name]) for name in names]
        label, decision = (np.asarray(of_rows).reshape(-1).tolist() for of_rows in (y_true, y_pred))
        rows = [len(label), len(decision), *map(len, values)]
        if len(set(rows)) > 1:
            raise DataError(
                "expected as many predictions and sensitive features as labels, got "
                f"{rows[0]} labels, {rows[1]} predictions and sensitive features for "
                f"{', '.join(map(str, rows[2:]))} rows; pass one of each per row"
            )
        seen = {*label, *decision} - {self._pos_label} | self._other_labels
        _require_values("labels and predictions", seen)
        if len(seen) > 1:
            raise DataError(
                f"expected pos_label={self._pos_label!r} and one other label, got "
                f"{', '.join(sorted(map(repr, seen)))} besides it; decide which one is positive"
            )
        for name, column in zip(names, values, strict=True):
            _require_values(name, set(column))
        groups = list(zip(*values, strict=True))
        positive = [
            [value == self._pos_label for value in of_rows] for of_rows in (label, decision)
        ]
        kinds = Counter(zip(groups, *positive, strict=True))
        self._columns = names
        self._other_labels = frozenset(seen)
        four = list(product((False, True), repeat=2))
        return {
            group: Counts.of_kinds(*(kinds[group, *kind] for kind in four))
            for group in dict.fromkeys(groups)
        }


def _in_order(values: Iterable[Any]) -> list[Any]:
    """Values sorted, or sorted by how they are written where they cannot be compared."""
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _named(group: Group) -> Any:
    """A group as a person names it: its value, or the tuple of several."""
    return group[0] if len(group) == 1 else group


def _less(counts: Mapping[Group, Counts], batch: Mapping[Group, Counts]) -> dict[Group, Counts]:
    """The counts without a batch that is in them."""
    left = dict(counts)
    for group, removed in batch.items():
        rest = Counts(*map(sub, counts.get(group, Counts()), removed))
        # Six counts are four kinds of rows; none of the four can be fewer than none.
        missed, rejected = rest.y1_rows - rest.true_positive, rest.y0_rows - rest.false_positive
        if min(rest.true_positive, missed, rest.false_positive, rejected) < 0:
            raise DataError(
                f"expected only rows that were taken in before, got more of {_named(group)!r} than "
                "there are; nothing was taken out: revert what was updated, with the predictions "
                "it was updated with"
            )
        left[group] = rest
    return left


def _require_values(what: str, values: Iterable[Any]) -> None:
    for value in values:
        try:
            missing = value is None or bool(value != value)  # NaN is not itself
        except TypeError:  # pandas' missing value will not say
            missing = True
        if missing:
            raise DataError(
                f"expected a value in every row of {what}, got {value!r}; "
                "fill it in or leave the row out"
            )


def _plain(column: Any) -> list[Any]:
    """A column's values as Python's own."""
    if isinstance(column, nw.Series):
        return column.to_list()
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ConfigError(
            "expected pandas to be installed for Fairlearn's tables; "
            "pip install 'fairsaoml[fairlearn]'"
        ) from None
    return pandas
