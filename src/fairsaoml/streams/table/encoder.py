"""From raw columns to numbers: fitted once, on the first task, and fixed in width from then on.

Nothing after the first task changes an encoder: kinds, categories, means and scales are its own.
What comes later and does not fit is put in a defined place and remarked upon:

| what comes | where it goes |
|---|---|
| a category never seen, or beyond the 30 most frequent | the category "other" |
| a category never seen, in a column of two values | the first task's share of the second |
| no value, where the first task had gaps too | the mean and a flag, or the category "missing" |
| no value, where the first task had none | the mean, or the category "other" |
| a text among numbers, an unreadable date | as no value |
| a number far outside the first task's | five standard deviations, no further |

How an encoder is fitted: `fairsaoml.streams.table.kinds`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Schema
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.columns import COMMA, POINT, Numbers, numbers
from fairsaoml.streams.table.groups import MISSING, Crossed, Protected, Sensitive, by_level
from fairsaoml.streams.table.reading import read_table
from fairsaoml.streams.table.roles import Label

VERSION = 2  # of the saved form; encoders of version 1 are read, and encode as they did
OTHER = "other"  # the category of all that was not seen
CLIP = 5.0  # standardised values stay within +-CLIP, so one wild row cannot wreck a gradient
MUCH_CLIPPED = 0.05  # share of a task's rows beyond the clip that is worth a remark
MAX_CATEGORIES = 30
FIRST_WEEKDAY = 3  # 1 January 1970 was a Thursday, and weeks begin on Monday
NO_VALUE = "have no value, unlike any in the first task"


class Remark(NamedTuple):
    """Something in the rows that the first task did not have."""

    column: str
    rows: int
    what: str
    example: str = ""

    def __str__(self) -> str:
        such = f", such as {self.example!r}" if self.example else ""
        return f"column {self.column!r}: {self.rows} rows {self.what}{such}"


class Encoded(NamedTuple):
    """Rows as a learner sees them, and what was odd about them."""

    x: np.ndarray  # (row, feature) float32
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """Standardised: (v - center) / scale within +-5; v in signed logarithms if `unit` is set."""

    kind: str = "numeric"
    name: str
    center: float
    scale: float
    unit: float | None = None  # sign(v) log(1 + |v| / unit) comes before scaling
    flag: bool = False  # one more feature: 1 where there is no value
    decimal: str = POINT  # what stands before decimals in a text; a point in old encoders

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return (self.name, f"{self.name}={MISSING}") if self.flag else (self.name,)

    def encode(self, column: Any) -> Encoded:
        """(row, 1) or, with a flag, (row, 2)."""
        read = numbers(column, self.decimal)
        with np.errstate(over="ignore"):  # beyond float64 is beyond the clip
            scaled = (logarithm(read.values, self.unit) - self.center) / self.scale
        beyond = int((np.abs(scaled) > CLIP).sum())
        many = beyond if beyond > MUCH_CLIPPED * len(scaled) else 0
        cut = Remark(self.name, many, f"are cut at {CLIP:g} standard deviations")
        return _with_gaps(self, [np.clip(scaled, -CLIP, CLIP)], read, "hold no number", cut)


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """One feature per level and one for all others; a column of two levels is one feature."""

    kind: str = "categorical"
    name: str
    levels: tuple[str, ...]
    share: float = 0.0  # of the second of two levels in the first task: stands in for the unknown
    fold: bool = False  # whether values that differ in case only are one; not in version 1

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        other = OTHER if OTHER not in self.levels else f"any {OTHER}"
        levels = self.levels[1:] if len(self.levels) == 2 else (*self.levels, other)
        return tuple(f"{self.name}={level}" for level in levels)

    def encode(self, column: Any) -> Encoded:
        """(row, 1) for two levels, else (row, level + 1)."""
        codes, absent, strange = by_level(column, self.levels, fold=self.fold)
        other = len(self.levels)
        # Beyond so many, rare ones of the first task were folded.
        new = sum(strange.values()) if other < MAX_CATEGORIES else 0
        two = np.array([[0.0], [1.0], [self.share]], np.float32)
        return _encoded(
            (two if other == 2 else np.eye(other + 1, dtype=np.float32))[codes],
            Remark(self.name, absent, NO_VALUE),
            Remark(self.name, new, "are of no known category", next(iter(strange), "")),
        )


@dataclass(frozen=True, kw_only=True)
class Date:
    """Years since the first task, and where in the year, the week and the day (sine, cosine)."""

    kind: str = "date"
    name: str
    format: str
    center: float  # seconds since 1970
    scale: float  # seconds: the first task's spread, a year at least
    hours: bool = False  # whether there is a time of day
    flag: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        flag = (f"{self.name}={MISSING}",) if self.flag else ()
        return (*(f"{self.name}:{part}" for part in self._parts(np.zeros(1))), *flag)

    def encode(self, column: Any) -> Encoded:
        """(row, part)."""
        read = dates.read(column, self.format)
        parts = self._parts(np.nan_to_num(read.values))
        return _with_gaps(self, [*parts.values()], read, "hold no date that could be read")

    def _parts(self, seconds: np.ndarray) -> dict[str, np.ndarray]:
        parts, turns = {}, {}
        if self.format != dates.CLOCK:
            parts["trend"] = np.clip((seconds - self.center) / self.scale, -CLIP, CLIP)
            days = np.floor(seconds / dates.DAY).astype("M8[D]")
            day_of_year = (days - days.astype("M8[Y]").astype("M8[D]")).astype(np.float64)
            turns["year"] = day_of_year / (dates.YEAR / dates.DAY)
            turns["week"] = (days.astype(np.int64) + FIRST_WEEKDAY) % 7 / 7
        if self.hours:
            turns["day"] = seconds / dates.DAY
        for period, share in turns.items():
            parts[f"{period}_sin"] = np.sin(2 * np.pi * share)
            parts[f"{period}_cos"] = np.cos(2 * np.pi * share)
        return parts


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A column that is no input, and why."""

    name: str
    reason: str


Column = Numeric | Categorical | Date
KINDS: dict[str, type] = {cls.kind: cls for cls in (Numeric, Categorical, Date)}


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Columns in order, and the roles of the others; plain JSON when saved.

    >>> import pyarrow as pa
    >>> from fairsaoml.streams.table.kinds import fit_encoder
    >>> table = pa.table({"age": [20, 30, 40], "job": ["cook", "nurse", "smith"]})
    >>> encoder = fit_encoder(table)
    >>> encoder.features
    ('age', 'job=cook', 'job=nurse', 'job=smith', 'job=other')
    >>> encoder.transform(pa.table({"age": [30, None], "job": ["smith", "pilot"]})).tolist()
    [[0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    >>> Encoder.from_json(encoder.to_json()) == encoder
    True
    """

    columns: tuple[Column, ...]
    dropped: tuple[Dropped, ...] = ()
    label: Label | None = None
    sensitive: tuple[Protected, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def schema(self) -> Schema:
        """What a learner must know of the rows."""
        attributes = tuple(role.attribute for role in self.sensitive)
        return Schema(features=self.features, attributes=attributes)

    def transform(self, frame: Any) -> np.ndarray:
        """Rows of any dataframe or file as (row, feature) float32."""
        return self.encode(frame).x

    def encode(self, frame: Any) -> Encoded:
        """Rows as features, with remarks on values that the first task did not have."""
        table = read_table(frame, [column.name for column in self.columns])
        encoded = [column.encode(table[column.name]) for column in self.columns]
        x = np.concatenate([part.x for part in encoded], axis=1, dtype=np.float32)
        return Encoded(x, tuple(remark for part in encoded for remark in part.remarks))

    def notes(self) -> tuple[str, ...]:
        """One sentence for each reason a column was left out."""
        names: dict[str, list[str]] = {}
        for column in self.dropped:
            names.setdefault(column.reason, []).append(column.name)
        return tuple(f"left out, {reason}: {', '.join(names[reason])}" for reason in names)

    def to_json(self) -> dict[str, Any]:
        """Plain values only."""
        plain: dict[str, Any] = json.loads(json.dumps({"version": VERSION} | asdict(self)))
        return plain

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Encoder":
        """What `to_json` wrote."""
        version = saved.get("version") if isinstance(saved, Mapping) else None
        if version not in (1, VERSION):
            raise DataError(
                f"expected a saved encoder of version 1 or {VERSION}, got {version!r}; "
                "make the run again with this version of fairsaoml"
            )
        try:
            return cls(
                columns=tuple(_whole(_made(KINDS[c["kind"]], c)) for c in saved["columns"]),
                dropped=tuple(_made(Dropped, column) for column in saved["dropped"]),
                label=None if saved["label"] is None else _made(Label, saved["label"]),
                sensitive=tuple(_protected(role) for role in saved["sensitive"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(
                f"expected a whole saved encoder, got one without {error}; make the run again"
            ) from error


def _whole(column: Column) -> Column:
    """The column; ValueError or TypeError where its values could not encode anything."""
    if not isinstance(column.name, str):
        raise TypeError("a name")
    if isinstance(column, Categorical):
        if not column.levels or not all(isinstance(level, str) for level in column.levels):
            raise TypeError("levels")
        numbers_of = [column.share]
    else:
        numbers_of = [column.center, column.scale, getattr(column, "unit", None) or 1.0]
    if not all(map(math.isfinite, numbers_of)) or 0.0 in numbers_of[1:]:
        raise ValueError("a scale")
    if isinstance(column, Numeric) and column.decimal not in (POINT, COMMA):
        raise ValueError("a decimal point or comma")
    if isinstance(column, Date) and column.format not in (dates.TYPED, dates.CLOCK):
        dates.require_format(column.format)
    return column


def _protected(saved: Mapping[str, Any]) -> Protected:
    if "parts" not in saved:
        return _made(Sensitive, saved)
    parts = tuple(_made(Sensitive, part) for part in saved["parts"])
    return Crossed(parts=parts, levels=tuple(saved["levels"]))


def logarithm(values: np.ndarray, unit: float | np.ndarray | None) -> np.ndarray:
    return values if unit is None else np.sign(values) * np.log1p(np.abs(values) / unit)


def _with_gaps(
    column: Numeric | Date, parts: list[np.ndarray], read: Numbers, unreadable: str, *more: Remark
) -> Encoded:
    """Parts with 0 where there is no usable value, which a flag or a remark says."""
    absent = np.isnan(read.values)
    unflagged = 0 if column.flag else int(absent.sum()) - read.unreadable
    features = [np.where(absent, 0.0, part) for part in parts]
    return _encoded(
        np.stack([*features, absent] if column.flag else features, axis=1).astype(np.float32),
        Remark(column.name, read.unreadable, unreadable, read.example),
        Remark(column.name, unflagged, NO_VALUE),
        *more,
    )


def _encoded(x: np.ndarray, *remarks: Remark) -> Encoded:
    return Encoded(x, tuple(remark for remark in remarks if remark.rows))


def _made(cls: type, saved: Mapping[str, Any]) -> Any:
    lists = {name: tuple(part) for name, part in saved.items() if isinstance(part, list)}
    return cls(**{**saved, **lists})
