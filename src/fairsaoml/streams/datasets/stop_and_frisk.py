"""New York's stop-and-frisk as streams: will this person be frisked, will they be arrested (D23).

`stop_and_frisk`: the label is `frisked`, the protected attribute whether the person stopped is
recorded as black (code B; black Hispanic, code P, counts as not black). Three boroughs, one after
another, are three domains, each cut into 32 tasks of equal size by date.

A column is a feature only if it was known before the frisk. Every published column stands in
`nypd_columns.csv`, with the reason if it is none. Ages, heights, weights, minutes of observation
and the suspected crime are scaled and listed by the first task; other codes are the code book's.

`stop_and_frisk_arrests`: all stops of 2011, ten days to a task, five boroughs, label arrest: six in
a hundred. Features of time and place only: a test of scale and of rare positives.

In the data home, `stop-and-frisk/2014.parquet` is what `data get` makes of a published file. Where
there is none, a published file in that folder (`.csv`, `.csv.gz`, `.zip`, its year in its name) is
read as it is.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.streams.datasets import home as data
from fairsaoml.streams.datasets import nypd
from fairsaoml.streams.datasets.home import KeptFiles
from fairsaoml.streams.datasets.nypd import Stops
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.encoder import Categorical, Date, Encoder
from fairsaoml.streams.table.groups import Sensitive
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.roles import Label
from fairsaoml.streams.table.stream import TaskSlice, equal_slices, stream_of_slices

DEFAULT_YEARS = "2014-2016"
ARRESTS_YEAR = 2011
ARRESTS = f"{ARRESTS_YEAR}-arrests"  # the file of that year with few columns
FOLDER = "stop-and-frisk"
ENDINGS = (".csv", ".csv.gz", ".zip")
GET = "fairsaoml data get stop-and-frisk"

Rows = tuple[Any, tuple[str, ...]]  # an Arrow table and notes on it

TASKS = 32  # per borough
ARRESTS_DAYS = 10  # of a task
ARRESTS_ROUTE = "BMQRS"

MEASURED = ("age", "height", "weight", "perobs")
FRISKED = Label(column="frisked", positive="Y", negative="N")
ARRESTED = Label(column="arstmade", positive="Y", negative="N")
BLACK = Sensitive(column="race", levels=("not black", "black"), value="B")
CLOCK = Date(name="timestop", format=dates.CLOCK, center=0.0, scale=1.0, hours=True)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def parse_years(years: str | int) -> tuple[int, ...]:
    """The years meant, in order.

    >>> parse_years("2014-2016"), parse_years(2012), parse_years("2009, 2011")
    ((2014, 2015, 2016), (2012,), (2009, 2011))
    >>> parse_years("2017")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairsaoml.core.errors.ConfigError: expected years of 2003 to 2016, such as ... got '2017'; ...
    """
    asked = str(years).split(",")
    spans = [re.fullmatch(r"\s*(\d{4})\s*(?:-\s*(\d{4})\s*)?", span) for span in asked]
    ranges = [range(int(span[1]), int(span[2] or span[1]) + 1) for span in spans if span]
    chosen = sorted({*chain.from_iterable(ranges)})
    if not all(spans) or not chosen or not {*chosen} <= {*nypd.YEARS}:
        raise ConfigError(
            f"expected years of {nypd.YEARS[0]} to {nypd.YEARS[-1]}, such as 2014-2016, 2012 or "
            f"2009,2011, got {str(years)!r}; later files have other columns"
        )
    return tuple(chosen)


def keep_stops(stops: Stops, home: Path, years: Iterable[int]) -> KeptFiles:
    """Write these years of a file into the data home; what was kept of them before is replaced."""
    kept = []
    for year in sorted(set(stops.counts) & set(years)):
        table, notes = _year_of(stops, year)
        path = kept_year(home, year if stops.full else ARRESTS)
        data.keep_table(table.replace_schema_metadata({"notes": json.dumps(notes)}), path)
        kept.append(KeptFiles((path,), notes))
    return KeptFiles.joined(kept)


def load_years(years: Iterable[int], home: Path) -> Rows:
    """The full record of these years, in order of time."""
    rows: dict[int, Rows] = {}
    read = cache(nypd.read_stops)  # one file may hold several years
    for year in years:
        if kept_year(home, year).exists():
            rows[year] = _load(kept_year(home, year), f"{GET} --years {year}")
            continue
        for stops in map(read, published_files(home, year)):
            if stops.full and year in stops.counts:
                rows[year] = _year_of(stops, year)
    if absent := [str(year) for year in years if year not in rows]:
        usual = {str(year) for year in parse_years(DEFAULT_YEARS)}
        option = "" if usual.issuperset(absent) else f" --years {','.join(absent)}"
        raise data.NotHere.of(f"stop-and-frisk of {', '.join(absent)}", home, GET + option)
    tables, notes = zip(*rows.values(), strict=True)
    alike = [table.select(tables[0].column_names) for table in tables]
    together = pa.concat_tables(alike).unify_dictionaries().combine_chunks()
    return together, tuple(dict.fromkeys(chain.from_iterable(notes)))


def load_arrests(home: Path) -> Rows:
    """The stops of 2011, from the copy with few columns or else from the full record."""
    command = f"{GET}-arrests"
    for path in (kept_year(home, ARRESTS), kept_year(home, ARRESTS_YEAR)):
        if path.exists():
            return _load(path, command)
    files = [nypd.read_stops(path) for path in published_files(home, ARRESTS_YEAR)]
    if not files:
        raise data.NotHere.of(f"stop-and-frisk of {ARRESTS_YEAR}", home, command)
    return _year_of(max(files, key=lambda stops: stops.table.num_rows), ARRESTS_YEAR)


def published_files(folder: Path, year: int | None = None) -> list[Path]:
    """Files in a folder, or in its folder stop-and-frisk, that by their names are NYPD's."""
    inside = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(path for path in inside.glob("*") if path.name.lower().endswith(ENDINGS))
    return [path for path in files if (_named(path) if year is None else year in _named(path))]


def _named(path: Path) -> range:
    """The years in a file's name.

    >>> _named(Path("sqf-2012-csv.zip")), _named(Path("nypd-sqf-2014-2016.csv.gz"))
    (range(2012, 2013), range(2014, 2017))
    """
    match = re.search(r"(20[01]\d)(?:-(20[01]\d))?", path.name)
    return range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)


def kept_year(home: Path, name: object) -> Path:
    """Where a year is kept."""
    return home / FOLDER / f"{name}.parquet"


def _load(path: Path, command: str) -> Rows:
    table = data.kept_table(path, command)
    try:
        return table, tuple(json.loads(table.schema.metadata[b"notes"]))
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path} was not made by: {command}") from None


def _year_of(stops: Stops, year: int) -> Rows:
    rows = stops.table.filter(pc.equal(pc.year(stops.table["date"]), year))
    return rows, (*stops.notes, *not_whole(stops, year))


def not_whole(stops: Stops, year: int) -> tuple[str, ...]:
    """A note if this is less than NYPD published of a year, where that is known."""
    whole, here = nypd.ROWS.get(year), stops.counts[year]
    if whole is None or here >= whole:
        return ()
    return (f"{year}: {here:,} stops, where NYPD published {whole:,}: not the whole year",)


def stop_and_frisk(
    route: str = "BMS", *, years: str | int = DEFAULT_YEARS, home: str | Path | None = None
) -> Stream:
    """Boroughs in the order of `route`, 32 tasks each; B Brooklyn, M Manhattan, Q Queens, R Bronx,
    S Staten Island. `years`: "2014-2016", "2012" or "2009,2011", of 2003 to 2016.
    """
    if not route or len(set(route)) < len(route) or not set(route) <= set(nypd.BOROUGHS):
        letters = ", ".join(f"{letter} {name}" for letter, name in nypd.BOROUGHS.items())
        raise ConfigError(
            f"expected a route of different boroughs ({letters}), got {route!r}; "
            f"{closest(route, ('BMS', 'RQS'))}"
        )
    rows = load_years(parse_years(years), data.data_home(home))
    slices, notes = _slices(rows, FRISKED.column, route, partial(equal_slices, count=TASKS))
    kinds = {**dict.fromkeys(MEASURED, "numeric"), "detailcm": "categorical"}
    fitted = fit_encoder(slices[0].table.select([*kinds]), kinds=kinds)
    codes = [
        Categorical(name=name, levels=column.values)
        for name, column in nypd.code_book().items()
        if column.use == nypd.FEATURE and column.kind != "number" and column.values
    ]
    columns = (*codes, CLOCK, *fitted.columns)
    encoder = replace(fitted, columns=columns, label=FRISKED, sensitive=(BLACK,))
    notes = (*notes, *encoder.notes())
    settings = {"years": str(years), **data.home_setting(home)}
    name = f"stop-and-frisk:{route}"
    return stream_of_slices(name, slices, encoder, settings=settings, notes=notes)


def stop_and_frisk_arrests(*, home: str | Path | None = None) -> Stream:
    """All stops of 2011 with a borough: B M Q R S, ten days to a task, label arrest."""
    table, notes = load_arrests(data.data_home(home))
    weekday = pa.array(WEEKDAYS).take(pc.day_of_week(table["date"]))
    rows = table.append_column("weekday", weekday), notes
    slices, notes = _slices(rows, ARRESTED.column, ARRESTS_ROUTE, _by_days)
    weekdays = Categorical(name="weekday", levels=WEEKDAYS)
    precincts = Categorical(name="precinct", levels=tuple(sorted(nypd.PRECINCTS, key=int)))
    columns = (CLOCK, weekdays, precincts)
    encoder = Encoder(columns=columns, label=ARRESTED, sensitive=(BLACK,))
    settings = data.home_setting(home)
    name = "stop-and-frisk-arrests"
    return stream_of_slices(name, slices, encoder, settings=settings, notes=notes)


def _slices(
    rows: Rows, label: str, route: str, cut: Callable[..., list[TaskSlice]]
) -> tuple[list[TaskSlice], tuple[str, ...]]:
    """The stops with a label, cut in each borough of the route, and notes."""
    table, notes = rows
    kept = table.filter(pc.is_valid(table[label]))
    if lost := table.num_rows - kept.num_rows:
        notes = (*notes, f"{lost:,} stops without {label!r} left out")
    boroughs = {nypd.BOROUGHS[one]: kept.filter(pc.equal(kept["borough"], one)) for one in route}
    each = (cut(stops, domain=borough) for borough, stops in boroughs.items())
    return [*chain.from_iterable(each)], notes


def _by_days(table: Any, domain: str) -> list[TaskSlice]:
    """Ten days to a task, counted from 1 January; a stretch without stops is no task."""
    days = np.asarray(table["date"]).astype("datetime64[D]")
    block = (days - np.datetime64(f"{ARRESTS_YEAR}-01-01")).astype(int) // ARRESTS_DAYS
    _, *parts = np.unique(block, return_index=True, return_counts=True)
    return [TaskSlice(domain, table.slice(*part)) for part in zip(*parts, strict=True)]
