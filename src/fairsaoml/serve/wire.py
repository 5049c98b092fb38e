"""JSON as it comes and goes: quick where it is plain, and precise about what cannot be read."""

import json
import math
from typing import Any

import orjson

__all__ = ["PLAIN", "Unreadable", "is_text", "parse", "to_json", "to_line"]

LINE = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS
PLAIN = frozenset({str, int, float, bool, type(None)})  # what a row may hold


class Unreadable(str):
    """A number that no float can hold, as it was written."""


def parse(text: bytes) -> Any:
    """Return what JSON says; whole numbers beyond 64 bits are floats.

    Raises:
        ValueError: it is no JSON, or says NaN.
        RecursionError: lists in lists without end.

    >>> parse(b'{"a": [1, 1e400]}')
    {'a': [1, '1e400']}
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # perhaps of one value alone: the other rows shall be answered
        return json.loads(text, parse_constant=_no_number, parse_float=_float, parse_int=_int)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON; send null")


def _float(text: str) -> float | Unreadable:
    value = float(text)
    return value if math.isfinite(value) else Unreadable(text)


def _int(text: str) -> Any:
    return int(text) if len(text) < 19 else _float(text)


def is_text(value: Any) -> bool:
    """Whether a string is whole: JSON can hold half a surrogate pair."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def to_json(value: Any) -> bytes:
    """Return plain data as JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a name that holds half a character
        return json.dumps(value).encode()


def to_line(value: Any) -> str:
    """Return plain data as text that is the same in whatever order its names come.

    Raises:
        TypeError: it holds half a character, or an `Unreadable`.

    >>> to_line({"b": 1, "a": "é"})
    '{"a":"é","b":1}'
    """
    return orjson.dumps(value, option=LINE).decode()
