"""Which column is what; and the two that are never inputs: the label, and the sensitive ones.

Those two are fitted on the first task: which two values a label has, which groups there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.core.types import Attribute
from fairsaoml.streams.table.columns import canonical, factor
from fairsaoml.streams.table.reading import need

__all__ = ["Label", "Roles", "Sensitive", "fit_label", "fit_sensitive"]

MISSING = "missing"  # the level of rows without a value
MAX_LEVELS = 12  # groups of one attribute; each brings its own constraints
MOSTLY = 0.5  # a sensitive column missing more than this tells nothing of fairness
# The usual word for "it happened", and its opposite.
POSITIVE_WORDS = {
    "1": "0",
    "true": "false",
    "t": "f",
    "yes": "no",
    "y": "n",
    "+": "-",
    "positive": "negative",
}
SHOWN = 5  # values named in a message


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which column is what."""

    label: str
    protected: tuple[str, ...]  # the columns of `sensitive`
    sensitive: tuple[str, ...]  # "COL" or "COL=VALUE", as asked
    time: str | None
    domain: str | None
    inputs: tuple[str, ...]
    named: bool  # whether the inputs were named one by one

    @classmethod
    def asked(
        cls,
        known: Sequence[str],
        label: str,
        sensitive: str | Sequence[str],
        time: str | None,
        domain: str | None,
        drop: str | Sequence[str],
        columns: str | Sequence[str],
    ) -> "Roles":
        """The roles that the settings of a stream ask for; contradictions raise `ConfigError`."""
        specs, dropped, named = names_of(sensitive), names_of(drop), names_of(columns)
        if not specs or len(set(specs)) < len(specs):
            raise ConfigError(f"sensitive must name columns, each once, got {specs}; name one")
        protected = [split(spec, known)[0] for spec in specs]
        order = [name for name in (time, domain) if name is not None]
        need([label, *protected, *order, *dropped, *named], known)
        if label in protected or label in order:
            raise ConfigError(
                f"the label must be a column of its own, got {label!r} also as "
                f"{'sensitive' if label in protected else 'time or domain'}; choose another"
            )
        for name in named:
            if name == label or name in protected:
                role = "the label" if name == label else "sensitive"
                raise ConfigError(f"an input must not be {role}, got {name!r}; leave it out")
        rest = {label, *protected, *order}
        inputs = named or [name for name in known if name not in rest]
        return cls(
            label=label,
            protected=tuple(protected),
            sensitive=tuple(specs),
            time=time,
            domain=domain,
            inputs=tuple(name for name in inputs if name not in dropped),
            named=bool(named),
        )

    @property
    def columns(self) -> list[str]:
        """All columns that must be read, each once."""
        others = [name for name in (self.time, self.domain) if name is not None]
        return list(dict.fromkeys([self.label, *self.protected, *others, *self.inputs]))


def names_of(names: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else list(names)


@dataclass(frozen=True, kw_only=True)
class Label:
    """Two values, one of them positive."""

    column: str
    positive: str
    negative: str

    def codes(self, column: Any) -> np.ndarray:
        """1 positive, 0 negative, -1 missing; any third value is an error.

        >>> Label(column="y", positive="yes", negative="no").codes(pa.array(["no", "yes", None]))
        array([ 0,  1, -1])
        """
        distinct = factor(column)
        self.check(distinct.values.to_pylist())
        pair = pa.array([self.negative, self.positive])
        return distinct.spread(_positions(distinct.values, pair), -1)

    def check(self, values: Sequence[str]) -> None:
        """Refuse a value that is neither."""
        strange = [value for value in values if value not in (self.positive, self.negative)]
        if strange:
            raise DataError(
                f"expected the label {self.column!r} to be {self.negative!r} or "
                f"{self.positive!r}, got also {_some(strange)}; "
                "make it two values, or leave those rows out"
            )


@dataclass(frozen=True, kw_only=True)
class Sensitive:
    """One attribute: the levels of a column, or one value against the rest."""

    column: str
    levels: tuple[str, ...]
    value: str | None = None  # set for "COL=VALUE"

    @property
    def attribute(self) -> Attribute:
        """How learners and reports see it."""
        name = self.column if self.value is None else f"{self.column}={self.value}"
        return Attribute(name=name, levels=self.levels)

    def codes(self, column: Any) -> tuple[np.ndarray, tuple[str, ...]]:
        """Group codes, and the values that had to go to the slot `unseen`.

        >>> Sensitive(column="sex", levels=("F", "M")).codes(pa.array(["M", "F", "X"]))
        (array([1, 0, 2], dtype=int32), ('X',))
        """
        distinct = factor(column)
        unseen = len(self.levels)
        if self.value is not None:
            place = (_positions(distinct.values, pa.array([self.value])) == 0).astype(np.int64)
            missing = unseen  # nobody knows whether it is the value
        else:
            place = _positions(distinct.values, pa.array(self.levels))
            missing = self.levels.index(MISSING) if MISSING in self.levels else unseen
        strange = distinct.values.filter(pa.array(place < 0)).to_pylist()
        codes = distinct.spread(np.where(place < 0, unseen, place), missing)
        if missing == unseen and (distinct.codes < 0).any():
            strange.append(MISSING)
        return codes.astype(np.int32), tuple(strange)


def fit_label(name: str, column: Any, positive: Any = None) -> tuple[Label, tuple[str, ...]]:
    """The label's two values from the first task, and notes.

    Without `positive`, it is the usual word (1, true, yes, +, against its opposite), else the
    greater value.

    >>> fit_label("income", pa.array(["<=50K", ">50K"]))[0].positive
    '>50K'
    """
    values = in_order_of_size(factor(column).values.to_pylist())
    if not values:
        raise DataError(
            f"expected values in the label {name!r}, got none in the first task; "
            "choose another column or larger tasks"
        )
    wish = None if positive is None else canonical(pa.array([positive])).to_pylist()[0]
    if len(values) > 2:
        raise DataError(
            f"expected two values in the label {name!r}, got {len(values)}: {_some(values)}; "
            "make it two values"
        )
    if len(values) == 1:
        values = _completed(name, values[0], wish)
    if wish is None:
        chosen = _usual(values)
    elif wish in values:
        chosen = wish
    else:
        raise DataError(
            f"expected the positive label to be one of {_some(values)}, got {wish!r}; "
            f"{closest(wish, values)}"
        )
    other = values[0] if chosen == values[1] else values[1]
    notes = () if wish else (f"label {name}: {chosen!r} counts as positive, {other!r} as negative",)
    return Label(column=name, positive=chosen, negative=other), notes


def fit_sensitive(spec: str, columns: Sequence[str], table: Any) -> Sensitive:
    """The groups of `COL` or `COL=VALUE` from the first task.

    >>> fit_sensitive("race=b", ["race"], pa.table({"race": ["b", "w", "a"]})).levels
    ('not b', 'b')
    """
    name, value = split(spec, columns)
    distinct = factor(table[name])
    rows = len(distinct.codes)
    absent = int((distinct.codes < 0).sum())
    if absent > MOSTLY * rows:
        raise DataError(
            f"expected groups in the sensitive column {name!r}, got {absent} of {rows} rows of "
            "the first task without a value; fill them in or choose another column"
        )
    values = in_order_of_size(distinct.values.to_pylist())
    if value is not None:
        value = canonical(pa.array([value])).to_pylist()[0] or value
        if value not in values:
            raise DataError(
                f"expected {value!r} among the values of the sensitive column {name!r}, "
                f"got {_some(values)} in the first task; {closest(value, values)}"
            )
        levels = (f"not {value}", value)
        if len(values) == 1:
            raise _one_group(name, values)
        return Sensitive(column=name, levels=levels, value=value)
    if absent and MISSING not in values:
        values = [*values, MISSING]
    if len(values) < 2:
        raise _one_group(name, values)
    if len(values) > MAX_LEVELS:
        raise DataError(
            f"expected at most {MAX_LEVELS} groups in the sensitive column {name!r}, got "
            f"{len(values)} ({_some(values)}) in the first task; "
            f"group its values first, or name one: {name}={values[0]}"
        )
    return Sensitive(column=name, levels=tuple(values))


def split(spec: str, columns: Sequence[str]) -> tuple[str, str | None]:
    """Column and value of "COL" or "COL=VALUE"; a column may itself contain the sign.

    >>> split("race=b", ["race"]), split("a=b", ["a=b"])
    (('race', 'b'), ('a=b', None))
    """
    if spec in columns or "=" not in spec:
        return spec, None
    name, _, value = spec.partition("=")
    return name, value


def in_order_of_size(values: Sequence[str]) -> list[str]:
    """Numbers by size, anything else by text.

    >>> in_order_of_size(["10", "9"]), in_order_of_size(["b", "10", "a"])
    (['9', '10'], ['10', 'a', 'b'])
    """
    try:
        return sorted(values, key=float)
    except ValueError:
        return sorted(values)


def _one_group(name: str, values: Sequence[str]) -> DataError:
    return DataError(
        f"expected two or more groups in the sensitive column {name!r}, got one "
        f"({_some(values)}) in the first task; make the tasks larger or choose another column"
    )


def _completed(name: str, value: str, wish: str | None) -> list[str]:
    """Both values, where the first task shows one: from the wish, or from the usual words."""
    if wish is not None and wish != value:
        return [value, wish]
    for positive, negative in POSITIVE_WORDS.items():
        for one, other in ((positive, negative), (negative, positive)):
            if value.lower() == one:
                return [value, _same_case(other, value)]
    raise DataError(
        f"expected two values in the label {name!r}, got only {value!r} in the first task; "
        "make the tasks larger, or say which value is positive"
    )


def _same_case(word: str, model: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[:1].isupper() else word


def _usual(values: Sequence[str]) -> str:
    one, other = in_order_of_size(values)
    return one if POSITIVE_WORDS.get(one.lower()) == other.lower() else other


def _positions(values: Any, known: Any) -> np.ndarray:
    """Place of each distinct value among the known ones, -1 for none."""
    place = pc.fill_null(pc.index_in(values, value_set=known.cast(pa.string())), -1)
    return place.to_numpy(zero_copy_only=False).astype(np.int64)


def _some(values: Sequence[str]) -> str:
    shown = ", ".join(repr(value) for value in values[:SHOWN])
    return shown + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")
