"""Protected groups: the levels of a column, one value against the rest, ranges, intersections.

A person asks for them in one word, such as `race`, `race=black`, `age>40`, `age:18,30,50` or
`sex*age>40`. Which levels there are is decided on the first task, and by those that are known to
come later. A row without a value, or of any other level, is in the slot after the last one: counted
apart, in no constraint and in no ratio.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.core.types import Attribute
from fairsaoml.streams.table import columns as raw

MISSING = "missing"  # what saved encoders of version 1 call the level of rows without a value
MAX_LEVELS = 12  # groups of one attribute; each brings its own constraints
MOSTLY = 0.5  # a sensitive column missing more than this tells nothing of fairness
CROSS, JOINED = "*", " & "  # as typed, and in a level's name
# Column, sign and the rest, in the order in which they are tried.
_SIGNED = (r"(.+?)(>=|<=|>|<)([^<>=]+)", r"(.+)(:)([^:]+)", r"(?s)([^=]+)(=)(.*)")


class Grouped(NamedTuple):
    """Rows by group."""

    codes: np.ndarray  # (row,) int32 position among the levels; their number where not known
    missing: int  # rows without a value
    strange: Mapping[str, int]  # values that the first task had not, and their rows


def by_level(
    column: Any, levels: Sequence[str], value: str | None = None, *, fold: bool
) -> Grouped:
    """Rows by level, or by whether they have one value: these are of the second of two levels."""
    distinct, unknown = raw.factor(column), len(levels)
    known, rest = (levels, 0) if value is None else ([value], 1)  # the first level is the rest
    place = raw.positions(distinct.values, known, fold=fold) + rest
    # A level of categories; of groups in encoders of version 1.
    gap = levels.index(MISSING) if value is None and MISSING in levels else unknown
    new = place < 0
    codes = distinct.spread(np.where(new, unknown, place), gap).astype(np.int32)
    missing = int((distinct.codes < 0).sum()) if gap == unknown else 0
    if not new.any():
        return Grouped(codes, missing, {})
    strange, rows = distinct.values.filter(new).to_pylist(), distinct.counts()[new].tolist()
    return Grouped(codes, missing, dict(zip(strange, rows, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Sensitive:
    """One attribute of one column: its levels, one value against the rest, or ranges."""

    column: str
    levels: tuple[str, ...]
    value: str | None = None  # set for "COL=VALUE"
    cuts: tuple[float, ...] = ()  # set for ranges: code i is what lies between cuts i - 1 and i
    above: bool = False  # whether a number equal to a cut lies below it, as in "age>40"
    fold: bool = False  # whether values that differ in case only are one; not in old encoders
    range: str | None = None  # how a range was asked for, such as "age>40"
    decimal: str = raw.POINT  # what stands before decimals in the texts of a range

    @property
    def attribute(self) -> Attribute:
        """How learners and reports see it."""
        plain = self.column if self.value is None else f"{self.column}={self.value}"
        return Attribute(name=self.range or plain, levels=self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns that it reads."""
        return (self.column,)

    def codes(self, table: Any) -> Grouped:
        """Each row's group.

        >>> sex = Sensitive(column="sex", levels=("F", "M"))
        >>> sex.codes(pa.table({"sex": ["M", "F", "X", None]}))
        Grouped(codes=array([1, 0, 2, 2], dtype=int32), missing=1, strange={'X': 1})
        """
        column = table[self.column]
        if self.cuts:
            values = raw.numbers(column, self.decimal).values
            codes = np.searchsorted(self.cuts, values, side="left" if self.above else "right")
            absent = np.isnan(values)
            codes = np.where(absent, len(self.levels), codes).astype(np.int32)
            return Grouped(codes, int(absent.sum()), {})
        return by_level(column, self.levels, self.value, fold=self.fold)


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """An intersection of attributes. Pairs that the first task does not have are unknown."""

    parts: tuple[Sensitive, ...]
    levels: tuple[str, ...]

    @property
    def attribute(self) -> Attribute:
        """How learners and reports see it."""
        names = (part.attribute.name for part in self.parts)
        return Attribute(name=CROSS.join(names), levels=self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns that it reads."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def codes(self, table: Any) -> Grouped:
        """Each row's group."""
        grouped = [part.codes(table) for part in self.parts]
        # Every pair there may be, in order, with "" for what is not known of a part.
        pairs = [
            JOINED.join(pair) if all(pair) else ""
            for pair in product(*((*part.levels, "") for part in self.parts))
        ]
        code_of = {level: code for code, level in enumerate(self.levels)}
        codes = np.array([code_of.get(pair, len(self.levels)) for pair in pairs], np.int32)
        shape = [len(part.levels) + 1 for part in self.parts]
        pair_of = np.ravel_multi_index([one.codes for one in grouped], shape)
        strange = {
            f"{part.column}={value}": n
            for part, one in zip(self.parts, grouped, strict=True)
            for value, n in one.strange.items()
        }
        rows = zip(pairs, np.bincount(pair_of, minlength=len(pairs)).tolist(), strict=True)
        strange |= {pair: n for pair, n in rows if n and pair and pair not in code_of}
        return Grouped(codes[pair_of], max(one.missing for one in grouped), strange)


Protected = Sensitive | Crossed


def columns_of(spec: str, columns: Sequence[str]) -> list[str]:
    """The columns that a spec such as `sex*age>40` names, whether the table has them or not.

    >>> columns_of("sex*age>40", ["sex", "age"]), columns_of("a=b", ["a=b"])
    (['sex', 'age'], ['a=b'])
    """
    return [column for column, _, _ in _parts(spec, columns)]


def listed(spec: str, columns: Sequence[str]) -> list[str]:
    """The specs of a list such as `sex,race`; a range has commas of its own.

    >>> columns = ["sex", "race", "age"]
    >>> listed("sex,race", columns), listed("age:18,30", columns), listed("sex,rase", columns)
    (['sex', 'race'], ['age:18,30'], ['sex,rase'])
    """
    parts = [part.strip() for part in spec.split(",")]
    known = all(column in columns for part in parts for column in columns_of(part, columns))
    return parts if known and spec not in columns else [spec]


def known_by_column(known: Any, protected: Sequence[str]) -> dict[str, list[str]]:
    """The groups that are known to come, by sensitive column: from a mapping, or "COL=A,B" texts.

    >>> known_by_column(["race=x,y", "race=z"], ["sex", "race"])
    {'race': ['x', 'y', 'z']}
    """
    pairs: list[tuple[str, Any]] = []
    if isinstance(known, Mapping):
        pairs = [(str(name), values) for name, values in known.items()]
    else:
        for text in [known] if isinstance(known, str) else known:
            name, sign, values = str(text).partition("=")
            if not sign:
                raise ConfigError(f"expected known groups as COLUMN=A,B, got {text!r}")
            pairs.append((name.strip(), values.split(",")))
    levels: dict[str, list[str]] = {}
    for name, values in pairs:
        if name not in protected:
            hint = closest(name, protected)
            raise ConfigError(f"expected known groups of a sensitive column, got {name!r}; {hint}")
        texts = raw.texts([values] if isinstance(values, str) else values)
        levels.setdefault(name, []).extend(filter(None, raw.canonical(texts).to_pylist()))
    return levels


def fit_sensitive(
    spec: str, columns: Sequence[str], table: Any, known: Mapping[str, Sequence[str]]
) -> Protected:
    """The groups of one spec, from the first task; `known`: others that come later, by column.

    Raises:
        ConfigError: A range that is none.
        DataError: Fewer than two groups, more than `MAX_LEVELS`, or mostly no values.

    >>> fit_sensitive("race=b", ["race"], pa.table({"race": ["b", "w", "a"]}), {}).levels
    ('not b', 'b')
    >>> fit_sensitive("age:30,50", ["age"], pa.table({"age": [20, 30, 60]}), {}).levels
    ('below 30', '30 to 50', '50 and above')
    """
    parts = tuple(
        _fit_range(name, sign, rest, table[name])
        if sign not in ("", "=")
        else fit_levels(name, table[name], rest if sign else None, known.get(name, ()))
        for name, sign, rest in _parts(spec, columns)
    )
    if len(parts) == 1:
        return parts[0]
    pairs = [*product(*(part.levels for part in parts))]
    every = Crossed(parts=parts, levels=tuple(map(JOINED.join, pairs)))
    rows = np.bincount(every.codes(table).codes, minlength=len(pairs))
    later = [{*known.get(part.column, ())} for part in parts]
    levels = [
        level
        for level, pair, count in zip(every.levels, pairs, rows, strict=False)
        if count or any(value in levels for value, levels in zip(pair, later, strict=True))
    ]
    return Crossed(parts=parts, levels=_countable(spec, levels))


def _parts(spec: str, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Each part of a spec: its column, a sign and the rest; a column may have signs."""
    parted = []
    for part in [spec] if spec in columns else spec.split(CROSS):
        matches = [match.groups() for match in (re.fullmatch(p, part) for p in _SIGNED) if match]
        known = [reading for reading in matches if reading[0] in columns]
        whole = (part, "", "")
        parted.append(whole if part in columns else (*known, *matches, whole)[0])
    return parted


def _fit_range(name: str, sign: str, rest: str, column: Any) -> Sensitive:
    spec = f"{name}{sign}{rest}"
    try:
        cuts = [float(number) for number in rest.split(",")]
    except ValueError:
        cuts = [math.nan]
    if not all(map(math.isfinite, cuts)) or sorted(set(cuts)) != cuts:
        raise ConfigError(
            f"expected rising numbers in the sensitive range {spec!r}, got {rest!r}; "
            "write for example age>40 or age:18,30,50"
        )
    above = sign in (">", "<=")  # the number itself is on the lower side
    if sign == ":":
        between = [f"{low:g} to {high:g}" for low, high in pairwise(cuts)]
        levels = [f"below {cuts[0]:g}", *between, f"{cuts[-1]:g} and above"]
    else:
        levels = [f"{side}{cuts[0]:g}" for side in (("<=", ">") if above else ("<", ">="))]
    fitted = Sensitive(
        column=name,
        levels=_countable(spec, levels),
        cuts=tuple(cuts),
        above=above,
        range=spec.replace(" ", ""),
        decimal=raw.decimal_of(column),
    )
    grouped = fitted.codes({name: column})
    _require_values(name, grouped.missing, len(column))
    _countable(spec, [level for code, level in enumerate(levels) if code in grouped.codes])
    return fitted


def fit_levels(
    name: str, column: Any, value: str | None = None, known: Sequence[str] = ()
) -> Sensitive:
    """The levels of a column, or one value against the rest, from the first task and `known`."""
    distinct = raw.factor(column).folded()
    _require_values(name, int((distinct.codes < 0).sum()), len(distinct.codes))
    spelled = {level.lower(): level for level in [*known, *distinct.values.to_pylist()]}
    # "missing" is the word for what it says.
    levels = in_order_of_size([level for level in spelled.values() if level != MISSING])
    if value is not None:
        value = raw.canonical(pa.array([value])).to_pylist()[0] or value
        chosen = spelled.get(value.lower(), "")
        if chosen not in levels:
            raise DataError(
                f"expected {value!r} among the values of the sensitive column {name!r}, "
                f"got {raw.some(levels)} in the first task; {closest(value, levels)}; if it comes "
                f"later, add --known-groups {shlex.quote(f'{name}={value}')}"
            )
    option = shlex.quote(f"{name}=VALUE")
    later = f", or name those that come later: --known-groups {option}"
    if value is None:
        return Sensitive(column=name, levels=_countable(name, levels, later), fold=True)
    _countable(name, levels[:2], later)  # one value and a rest, of however many
    return Sensitive(column=name, levels=(f"not {chosen}", chosen), value=chosen, fold=True)


def _require_values(name: str, missing: int, rows: int) -> None:
    if missing > MOSTLY * rows:
        raise DataError(
            f"expected groups in the sensitive column {name!r}, got {missing} of {rows} rows of "
            "the first task without a value; fill them in or choose another column"
        )


def _countable(name: str, levels: Sequence[str], later: str = "") -> tuple[str, ...]:
    """The levels, if they are two or more and not too many."""
    if len(levels) < 2:
        raise DataError(
            f"expected two or more groups in the sensitive column {name!r}, got one "
            f"({raw.some(levels)}) in the first task; "
            f"make the tasks larger or choose another column{later}"
        )
    if len(levels) > MAX_LEVELS:
        raise DataError(
            f"expected at most {MAX_LEVELS} groups in the sensitive column {name!r}, got "
            f"{len(levels)} ({raw.some(levels)}) in the first task; group its values first, name "
            f"one ({name}={levels[0]}), or cut numbers into ranges ({name}:18,30,50)"
        )
    return tuple(levels)


def in_order_of_size(values: Sequence[str]) -> list[str]:
    """Numbers by size, anything else by text.

    >>> in_order_of_size(["10", "9"]), in_order_of_size(["b", "10", "a"])
    (['9', '10'], ['10', 'a', 'b'])
    """
    try:
        return sorted(values, key=float)
    except ValueError:
        return sorted(values)
