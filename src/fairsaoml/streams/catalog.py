"""Streams by the names people type; a name with a file's ending is a table of the user's own."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.streams.stream import Stream

__all__ = ["CATALOG", "TABLE_ENDINGS", "Listing", "is_table", "open_stream", "setting_names"]

TABLE_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


class Listing(NamedTuple):
    """Where a stream is made, which of its settings its name fixes, and what it is."""

    module: str
    factory: str
    fixed: dict[str, Any]
    summary: str


TABLE = Listing("table.stream", "stream_from_table", {}, "a table of your own: CSV or Parquet")
CATALOG: dict[str, Listing] = {
    "synthetic": Listing(
        "synthetic",
        "synthetic",
        {"gradual": False},
        "lending-like, three domains of 30 tasks; gap and concept turn at each change",
    ),
    "synthetic-gradual": Listing(
        "synthetic", "synthetic", {"gradual": True}, "the same, drifting instead of jumping"
    ),
    "movielens": Listing(
        "datasets.movielens",
        "movielens",
        {},
        "100,000 film ratings in three copies, the middle one turned; protected: gender",
    ),
    "stop-and-frisk:BMS": Listing(
        "datasets.stop_and_frisk",
        "stop_and_frisk",
        {"route": "BMS"},
        "who is frisked in New York: Brooklyn, Manhattan, Staten Island; protected: race",
    ),
    "stop-and-frisk:RQS": Listing(
        "datasets.stop_and_frisk",
        "stop_and_frisk",
        {"route": "RQS"},
        "the same: Bronx, Queens, Staten Island",
    ),
    "stop-and-frisk-arrests": Listing(
        "datasets.stop_and_frisk",
        "stop_and_frisk_arrests",
        {},
        "685,724 stops of 2011, ten days a task, five boroughs; 6 % are arrested",
    ),
}


def is_table(name: str) -> bool:
    """Whether a stream's name is a table's file name.

    >>> is_table("loans.csv"), is_table("synthetic")
    (True, False)
    """
    return name.lower().endswith(TABLE_ENDINGS)


def listing(name: str) -> Listing:
    """A stream by name; an unknown one is an error that says which was meant."""
    if is_table(name):
        return TABLE
    if name not in CATALOG:
        if Path(name).exists():
            endings = ", ".join(TABLE_ENDINGS)
            raise ConfigError(f"expected a table ending in one of {endings}; got {name!r}")
        raise ConfigError(
            f"unknown stream {name!r}; {closest(name, CATALOG)} (`fairsaoml streams` lists them; "
            "a file of your own ends in .csv or .parquet)"
        )
    return CATALOG[name]


def _factory(name: str) -> Callable[..., Stream]:
    where = listing(name)
    return getattr(import_module(f"fairsaoml.streams.{where.module}"), where.factory)


def setting_names(name: str) -> list[str]:
    """The settings a stream takes, those apart that its name fixes."""
    parameters = inspect.signature(_factory(name)).parameters.values()
    fixed = listing(name).fixed
    hidden = {*fixed, "encoder"}
    return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY and p.name not in hidden]


def open_stream(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    encoder: Mapping[str, Any] | None = None,
) -> Stream:
    """Open a stream.

    Args:
        name: A name of the catalog, or the path of a table.
        settings: The stream's settings; `setting_names` lists them.
        encoder: A saved encoder, for a table: used instead of one fitted on the first task.

    Raises:
        ConfigError: The name is unknown, or a setting that the stream needs is not given.
        DataError: The rows are not there or cannot be read.
    """
    factory, where = _factory(name), listing(name)
    chosen = {**where.fixed, **(settings or {})}
    needed = inspect.signature(factory).parameters.values()
    missing = [
        p.name
        for p in needed
        if p.kind == p.KEYWORD_ONLY and p.default is p.empty and p.name not in chosen
    ]
    if missing:
        raise ConfigError(
            f"expected to be told which column of {name} is {' and which '.join(missing)}; "
            f"add {' '.join(f'--set {setting}=COLUMN' for setting in missing)}"
        )
    if not is_table(name):
        return factory(**chosen)
    if encoder is not None:
        factory = partial(factory, encoder=encoder)
    return factory(name, **chosen)
