"""New York's stop-and-frisk as streams: will this person be frisked, will they be arrested (D23).

`stop_and_frisk`: the label is `frisked`, the protected attribute whether the person stopped is
recorded as black (code B; black Hispanic, code P, counts as not black). Three boroughs, one after
another, are three domains, each cut into 32 tasks of equal size by date.

A column is a feature only if it was known before the frisk. Every published column stands in
`nypd_columns.csv`, with the reason if it is none. Ages, heights, weights, minutes of observation
and the suspected crime are scaled and listed by the first task; other codes are the code book's.

`stop_and_frisk_arrests`: all stops of 2011, ten days to a task, five boroughs, label arrest: six in
a hundred. Features of time and place only: a test of scale and of rare positives.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.streams.datasets.home import data_home, home_setting
from fairsaoml.streams.datasets.nypd import BOROUGHS, FEATURE, PRECINCTS, code_book
from fairsaoml.streams.datasets.slices import TaskSlice, equal_slices, stream_of_slices
from fairsaoml.streams.datasets.stops import (
    ARRESTS_YEAR,
    DEFAULT_YEARS,
    Rows,
    load_arrests,
    load_years,
    parse_years,
)
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.encoder import Categorical, Date, Encoder
from fairsaoml.streams.table.groups import Sensitive
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.roles import Label

__all__ = ["stop_and_frisk", "stop_and_frisk_arrests"]

TASKS = 32  # per borough
ARRESTS_DAYS = 10  # of a task
ARRESTS_ROUTE = "BMQRS"

MEASURED = ("age", "height", "weight", "perobs")
BLACK = Sensitive(column="race", levels=("not black", "black"), value="B")
CLOCK = Date(name="timestop", format=dates.CLOCK, center=0.0, scale=1.0, hours=True)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def stop_and_frisk(
    route: str = "BMS", *, years: str | int = DEFAULT_YEARS, home: str | Path | None = None
) -> Stream:
    """Boroughs in the order of `route`, 32 tasks each; B Brooklyn, M Manhattan, Q Queens, R Bronx,
    S Staten Island. `years`: "2014-2016", "2012" or "2009,2011", of 2003 to 2016.
    """
    if not route or len(set(route)) < len(route) or not set(route) <= set(BOROUGHS):
        letters = ", ".join(f"{letter} {name}" for letter, name in BOROUGHS.items())
        raise ConfigError(
            f"expected a route of different boroughs ({letters}), got {route!r}; "
            f"{closest(route, ('BMS', 'RQS'))}"
        )
    rows = load_years(parse_years(years), data_home(home))
    boroughs, notes = _labelled(rows, "frisked", route)
    slices = [
        task_slice
        for borough, table in boroughs.items()
        for task_slice in equal_slices(table, TASKS, borough)
    ]
    fitted = fit_encoder(
        slices[0].table.select([*MEASURED, "detailcm"]),
        kinds={**dict.fromkeys(MEASURED, "numeric"), "detailcm": "categorical"},
    )
    encoder = Encoder(
        columns=(
            *(
                Categorical(name=name, levels=column.values)
                for name, column in code_book().items()
                if column.use == FEATURE and column.kind != "number" and column.values
            ),
            CLOCK,
            *fitted.columns,
        ),
        dropped=fitted.dropped,
        label=Label(column="frisked", positive="Y", negative="N"),
        sensitive=(BLACK,),
    )
    return stream_of_slices(
        f"stop-and-frisk:{route}",
        slices,
        encoder,
        settings={"years": str(years), **home_setting(home)},
        notes=(*notes, *encoder.notes()),
    )


def stop_and_frisk_arrests(*, home: str | Path | None = None) -> Stream:
    """All stops of 2011 with a borough: B M Q R S, ten days to a task, label arrest."""
    table, notes = load_arrests(data_home(home))
    weekday = pc.cast(pc.day_of_week(table["date"]), pa.int8())
    names = pa.DictionaryArray.from_arrays(weekday.combine_chunks(), pa.array(WEEKDAYS))
    rows = table.append_column("weekday", names), notes
    boroughs, notes = _labelled(rows, "arstmade", ARRESTS_ROUTE)
    slices = [
        TaskSlice(borough, stops)
        for borough, table in boroughs.items()
        for stops in _by_days(table)
    ]
    precincts = sorted(number for numbers in PRECINCTS.values() for number in numbers)
    encoder = Encoder(
        columns=(
            CLOCK,
            Categorical(name="weekday", levels=WEEKDAYS),
            Categorical(name="precinct", levels=tuple(str(number) for number in precincts)),
        ),
        label=Label(column="arstmade", positive="Y", negative="N"),
        sensitive=(BLACK,),
    )
    return stream_of_slices(
        "stop-and-frisk-arrests",
        slices,
        encoder,
        settings=home_setting(home),
        notes=notes,
    )


def _labelled(rows: Rows, label: str, route: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The stops with a label in each borough of the route, and notes."""
    table, notes = rows
    kept = table.filter(pc.is_valid(table[label]))
    if lost := table.num_rows - kept.num_rows:
        notes = (*notes, f"{lost:,} stops without {label!r} left out")
    return {BOROUGHS[one]: kept.filter(pc.equal(kept["borough"], one)) for one in route}, notes


def _by_days(table: Any) -> list[Any]:
    """Ten days to a task, counted from 1 January; a stretch without stops is no task."""
    days = np.asarray(table["date"]).astype("datetime64[D]")
    block = (days - np.datetime64(f"{ARRESTS_YEAR}-01-01")).astype(int) // ARRESTS_DAYS
    _, starts, sizes = np.unique(block, return_index=True, return_counts=True)
    return [table.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
