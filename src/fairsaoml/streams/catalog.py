"""Streams by the names people type; a name with a file's ending is a table of the user's own.

Another package adds a stream by an entry point of the group `fairsaoml.streams`, whose object is a
`StreamEntry`.
"""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.core.registry import Registry
from fairsaoml.streams.stream import Stream

TABLE_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")
MOST_FILES, MOST_COLUMNS = 1000, 20  # that are looked at for a suggestion, that are named


class StreamEntry(NamedTuple):
    """How a stream is made: its settings are the factory's keyword-only arguments."""

    factory: Callable[..., Stream] | str  # a function, or "module:function" to import on demand
    summary: str
    fixed: Mapping[str, Any] = {}  # the settings that the stream's name decides


TABLE = StreamEntry(
    "fairsaoml.streams.table.stream:stream_from_table", "a table of your own: CSV or Parquet"
)
_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
CATALOG = {name: StreamEntry(**entry) for name, entry in _LISTED.items()}
STREAMS = Registry(
    "stream",
    "fairsaoml.streams",
    CATALOG,
    fits=lambda item: isinstance(item, StreamEntry),
    expected="a StreamEntry (fairsaoml.streams.catalog)",
)


def is_table(name: str) -> bool:
    """Whether a stream's name is a table's file name.

    >>> is_table("loans.csv"), is_table("synthetic")
    (True, False)
    """
    return name.lower().endswith(TABLE_ENDINGS)


def _entry(name: str) -> StreamEntry:
    """A stream by name; an unknown one is an error that says which was meant."""
    if is_table(name):
        return TABLE
    names = STREAMS.names()
    if name in names:
        return STREAMS.get(name)
    if Path(name).exists():
        endings = ", ".join(TABLE_ENDINGS)
        raise ConfigError(f"expected a table ending in one of {endings}; got {name!r}")
    raise ConfigError(
        f"unknown stream {name!r}; {closest(name, names)} (`fairsaoml streams` lists them; "
        "a file of your own ends in .csv or .parquet)"
    )


def require_file(name: str) -> None:
    """Raise DataError for the name of a table that does not exist; other names pass."""
    path = Path(name)
    if not is_table(name) or path.exists():
        return
    there = [one.name for one in path.parent.glob("*") if is_table(one.name)][:MOST_FILES]
    meant = get_close_matches(path.name, there, n=1)
    advice = f"did you mean {str(path.with_name(meant[0]))!r}?" if meant else "check the path"
    raise DataError(f"expected a file at {path}, got no such file; {advice}")


def _factory(entry: StreamEntry) -> Callable[..., Stream]:
    return resolve_name(entry.factory) if isinstance(entry.factory, str) else entry.factory


def _settings(entry: StreamEntry) -> dict[str, inspect.Parameter]:
    """The settings that a person may choose, by name."""
    hidden = {*entry.fixed, "encoder", "read"}
    return {
        name: parameter
        for name, parameter in inspect.signature(_factory(entry)).parameters.items()
        if parameter.kind == parameter.KEYWORD_ONLY and name not in hidden
    }


def setting_names(name: str) -> list[str]:
    """The settings a stream takes, without those that its name decides.

    >>> setting_names("synthetic")
    ['generator', 'domains', 'tasks', 'rows']
    """
    return list(_settings(_entry(name)))


def open_stream(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    encoder: Mapping[str, Any] | None = None,
    read: int | None = None,
) -> Stream:
    """Open a stream.

    Args:
        name: A name of the catalog, or the path of a table.
        settings: The stream's settings; `setting_names` lists them.
        encoder: Of a table that was opened before: how its rows were encoded then.
        read: And how many of its rows were read.

    Returns:
        The stream: a schema, and passes over its tasks.

    Raises:
        ConfigError: The name or a setting is unknown, or one that the stream needs is not given.
        DataError: The rows are not there or cannot be read.
    """
    entry = _entry(name)
    require_file(name)
    chosen, known = {**entry.fixed, **(settings or {})}, _settings(entry)
    for setting in settings or {}:
        if setting not in known:
            raise ConfigError(f"unknown setting {setting!r} of {name}; {closest(setting, known)}")
    missing = [
        setting
        for setting, parameter in known.items()
        if parameter.default is parameter.empty and setting not in chosen
    ]
    if missing:
        words = (
            f"expected to be told which column of {name} is {' and which '.join(missing)}; "
            f"add {' '.join(f'--{setting} COLUMN' for setting in missing)}"
        )
        if is_table(name):
            from fairsaoml.streams.table.guess import guessed_options
            from fairsaoml.streams.table.reading import open_source

            source = open_source(name)
            more = len(source.columns) - MOST_COLUMNS
            words += f" (its columns: {', '.join(source.columns[:MOST_COLUMNS])}"
            words += f" and {more} more)" if more > 0 else ")"
            if options := guessed_options(source, missing):
                words += f"; a guess from names and first rows: {' '.join(options)}"
        raise ConfigError(words)
    factory = _factory(entry)
    return (
        factory(name, **chosen, encoder=encoder, read=read) if is_table(name) else factory(**chosen)
    )
