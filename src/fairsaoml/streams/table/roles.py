"""The role of each column, and the label, whose two values are those of the first task."""

import re
import shlex
import tomllib
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.streams.table.columns import canonical, factor, positions, some
from fairsaoml.streams.table.groups import columns_of, in_order_of_size, listed
from fairsaoml.streams.table.reading import need

# How a value is read from its text, by what the column held.
TYPES: dict[str, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": lambda text: ("false", "true").index(text.lower()) == 1,
}


class Roles:
    """The role of each column, as the settings of a stream ask for it.

    Contradictions raise `ConfigError`.
    """

    def __init__(
        self,
        known: Sequence[str],
        label: str | None,
        sensitive: str | Sequence[str],
        time: str | None,
        domain: str | None,
        drop: str | Sequence[str],
        columns: str | Sequence[str],
    ) -> None:
        dropped = names_of(drop)
        self.named = names_of(columns)  # the inputs that were named one by one
        # "COL", "COL=VALUE", "COL>NUMBER", ..., as asked
        self.sensitive = [one for spec in names_of(sensitive) for one in listed(spec, known)]
        if label is None:
            raise ConfigError("expected the name of the label's column, got none; name it")
        self.label, self.time = label, time
        if not self.sensitive or len(set(self.sensitive)) < len(self.sensitive):
            got = self.sensitive
            raise ConfigError(f"sensitive must name columns, each once, got {got}; name one")
        of_specs = (column for spec in self.sensitive for column in columns_of(spec, known))
        self.protected = list(dict.fromkeys(of_specs))
        order = [name for name in (time, domain) if name is not None]
        # Of these every row must have one readable value.
        self.flat = [label, *self.protected, *order]
        need([*self.flat, *dropped, *self.named], known)
        if label in self.flat[1:]:
            role = "sensitive" if label in self.protected else "time or domain"
            raise ConfigError(
                f"the label must be a column of its own, got {label!r} also as {role}; "
                "choose another"
            )
        for name in self.named:
            if name == label or name in self.protected:
                role = "the label" if name == label else "sensitive"
                raise ConfigError(f"an input must not be {role}, got {name!r}; leave it out")
        inputs = self.named or [name for name in known if name not in self.flat]
        self.inputs = [name for name in inputs if name not in dropped]

    @property
    def columns(self) -> list[str]:
        """All columns that must be read, each once."""
        return list(dict.fromkeys([*self.flat, *self.inputs]))


def names_of(names: Any) -> list[str]:
    """One name or several, as a list.

    >>> names_of("sex"), names_of([0, "sex"])
    (['sex'], ['0', 'sex'])
    """
    several = [*names] if isinstance(names, Sequence) and not isinstance(names, str) else [names]
    return [name for one in several if (name := column_name(one)) is not None]


def column_name(name: Any) -> str | None:
    """A column's name as text: a dataframe may call its columns 0, 1, 2. None stays None.

    Raises ConfigError where it is neither.
    """
    if name is None or isinstance(name, str):
        return name
    if isinstance(name, int | tuple | np.integer) and not isinstance(name, bool):
        return str(name)
    raise ConfigError(f"expected the name of a column, got {name!r}; give it as text")


@dataclass(frozen=True, kw_only=True)
class Label:
    """Two values, one of them positive: as texts, and of which type they were."""

    column: str
    positive: str
    negative: str
    type: str = "text"  # of TYPES

    def typed(self, *types: str) -> "Label":
        """The label with the first of these types that both values can be read as, if any.

        >>> Label(column="y", positive="yes", negative="0").typed("integer", "boolean").type
        'text'
        """
        for name in types:
            with suppress(ValueError):
                label = replace(self, type=name)
                if len({*label.values}) == 2:
                    return label
        return self

    @property
    def values(self) -> tuple[Any, Any]:
        """The negative and the positive value, of the column's own type.

        >>> Label(column="y", positive="1", negative="0", type="integer").values
        (0, 1)
        """
        read = TYPES[self.type]
        return read(self.negative), read(self.positive)

    def codes(self, column: Any) -> np.ndarray:
        """1 positive, 0 negative, -1 missing; any third value is an error.

        >>> Label(column="y", positive="yes", negative="no").codes(pa.array(["no", "yes", None]))
        array([ 0,  1, -1])
        """
        distinct = factor(column)
        self.check(distinct.values.to_pylist())
        pair = [self.negative, self.positive]
        return distinct.spread(positions(distinct.values, pair, fold=True), -1)

    def check(self, values: Sequence[str]) -> None:
        """Raise DataError for a value that is neither the positive nor the negative one."""
        pair = {self.positive.lower(), self.negative.lower()}
        strange = [value for value in values if value.lower() not in pair]
        if strange:
            raise DataError(
                f"expected the label {self.column!r} to be {self.negative!r} or "
                f"{self.positive!r}, got also {some(strange)}; "
                "make it two values, or leave those rows out"
            )


def fit_label(name: str, column: Any, positive: Any = None) -> tuple[Label, tuple[str, ...]]:
    """The label's two values from the first task, and notes.

    Without `positive`, it is the greater of two numbers, or the one that words of `labels.toml`
    tell. Raises DataError where they do not tell, or there are not two values.

    >>> fit_label("income", pa.array(["<=50K", ">50K"]))[0].positive
    '>50K'
    >>> fit_label("credit", pa.array(["Denied", "Approved"]))[0].positive
    'Approved'
    """
    distinct = factor(column).folded()
    rows = dict(zip(distinct.values.to_pylist(), distinct.counts(), strict=True))
    values = in_order_of_size([*rows])
    if len(values) not in (1, 2):
        got = f"{len(values)}: {some(values)}" if values else "none in the first task"
        raise DataError(f"expected two values in the label {name!r}, got {got}; make it two values")
    wish = None if positive is None else _text(positive)
    if len(values) == 1:
        values = in_order_of_size(_completed(name, values[0], wish))
    if wish is not None:
        values.sort(key=lambda value: value.lower() == wish.lower())
        if values[1].lower() != wish.lower():
            hint = closest(wish, values)
            raise DataError(
                f"expected a value of the label {name!r} as positive, got {wish!r}; {hint}"
            )
    elif (rank := _rank(*values)) == (other := _rank(*reversed(values))):
        found = " and ".join(f"{value!r} ({rows[value]} rows)" for value in values)
        options = " or ".join(f"--positive {shlex.quote(value)}" for value in values)
        raise DataError(
            f"expected to be told which value of the label {name!r} is the positive one, got "
            f"{found} in the first task; add {options}"
        )
    elif rank > other:
        values.reverse()
    no, yes = values
    notes = () if wish else (f"label {name}: {yes!r} counts as positive, {no!r} as negative",)
    label = Label(column=name, positive=yes, negative=no)
    return label.typed(type_of(column.type)), notes


def type_of(kind: Any) -> str:
    """What a label's column of this Arrow type holds: a word of TYPES."""
    tests = {"boolean": types.is_boolean, "integer": types.is_integer, "number": types.is_floating}
    return next((word for word, holds in tests.items() if holds(kind)), "text")


def _rank(value: str, other: str) -> float:
    """How positive a value sounds beside the other: its size as a number, else 1, 0 or -1.

    >>> _rank("paid back", "not paid back"), _rank("not paid back", "paid back")
    (0, -1)
    >>> _rank("ineligible", "eligible"), _rank("A", "B"), _rank("Sí", "No")
    (-1, 0, 1)
    """
    try:
        return float(value) - float(other)
    except ValueError:
        pass
    words, others = _words(value), _words(other)
    known = known_words()
    turned = {prefix + word for prefix in known["prefixes"] for word in others}
    own = words - others
    if own & turned.union(known["negative"]):
        return -1
    return int(not own.isdisjoint(known["positive"]))


def _words(value: str) -> set[str]:
    """A value's words, and the sign that it begins with, in lower case and without accents."""
    letters = unicodedata.normalize("NFKD", value.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return set(re.findall(r"^[<>+-]|[^\W_]+", plain))


@cache
def known_words() -> dict[str, Any]:
    """Words in labels and in names of columns, from `labels.toml`."""
    return tomllib.loads(Path(__file__).with_name("labels.toml").read_text("utf-8"))


def _text(value: Any) -> str:
    """A value as a column's texts are written."""
    try:
        return canonical(pa.array([value])).to_pylist()[0] or str(value)
    except (pa.ArrowException, TypeError, OverflowError):
        raise ConfigError(f"positive must be one of the label's values, got {value!r}") from None


def _completed(name: str, value: str, wish: str | None) -> list[str]:
    """Both values, where the first task shows one: from the wish, or from the usual words."""
    if wish is not None and wish.lower() != value.lower():
        return [value, wish]
    opposites = known_words()["opposites"]
    if word := (opposites | {no: yes for yes, no in opposites.items()}).get(value.lower()):
        style = next((style for style in (str.upper, str.capitalize) if style(value) == value), str)
        return [value, style(word)]
    raise DataError(
        f"expected two values in the label {name!r}, got only {value!r} in the first task; "
        "make the tasks larger, or say which value is positive"
    )
