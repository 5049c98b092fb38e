"""Stop-and-frisk: fourteen years of spellings, what may be a feature, and how tasks are cut."""

import csv
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tools.group_gaps import frisk_gaps

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Task
from fairsaoml.streams.datasets.nypd import FEATURE, code_book, read_stops
from fairsaoml.streams.datasets.stop_and_frisk import (
    load_years,
    stop_and_frisk,
    stop_and_frisk_arrests,
)
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.encoder import Encoder
from published import CITIES, NYPD_COLUMNS, REAL, Stop, needs_real_data, nypd_csv, stops

HIGHEST_SINGLE = 0.75  # balanced accuracy of one feature in every borough: more would be a leak


def written(folder: Path, content: bytes, name: str = "2012.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def home_with(folder: Path, rows: list[Stop], name: str = "2012.csv") -> Path:
    written(folder / "stop-and-frisk", nypd_csv(rows), name)
    return folder


# The published files ------------------------------------------------------------------------


def in_2006(name: str) -> str:
    short = {"addrnum": "adrnum", "addrpct": "adrpct", "detailcm": "details_"}
    short |= {"dettypcm": "dettyp_c", "premtype": "premtyp", "premname": "prenam"}
    return (short | {"rescode": "rescod", "stinter": "strintr", "stname": "strname"}).get(
        name, name
    )


def with_iso_dates(name: str, value: str) -> str:
    if name == "datestop":
        return f"{value[-4:]}-{int(value[:-6]):02}-{value[-6:-4]}"
    return f"{int(value) // 100:02}:{int(value) % 100:02}" if name == "timestop" else value


def with_ticks(name: str, value: str) -> str:
    boxes = name[:3] in ("cs_", "ac_") or name == "radio"
    return {"Y": "1", "N": ""}.get(value, value) if boxes else value


def with_marks(name: str, value: str) -> str:
    return {" ": "NA"}.get(value, f" {value} " if name in ("datestop", "city", "race") else value)


SPELLINGS: dict[str, Callable[[list[Stop]], bytes]] = {
    "upper case and a byte order mark": lambda rows: nypd_csv(
        rows, rename=str.upper, start="\xef\xbb\xbf"
    ),
    "the abbreviations and dates of 2006": lambda rows: nypd_csv(
        rows, rename=in_2006, values=with_iso_dates
    ),
    "boxes of 2014: 1 and blank": lambda rows: nypd_csv(rows, values=with_ticks),
    "NA and padding": lambda rows: nypd_csv(rows, values=with_marks),
    "eight-digit dates": lambda rows: nypd_csv(
        rows, values=lambda name, value: value.zfill(8) if name == "datestop" else value
    ),
    "Staten Is": lambda rows: nypd_csv(
        rows, values=lambda name, value: value[:9] if name == "city" else value
    ),
    "an empty last row": lambda rows: nypd_csv(rows, end="," * 111 + "\r\n"),
    "a street with a letter that is not UTF-8": lambda rows: nypd_csv(
        rows, values=lambda name, value: "CAF\xc9" if name == "stname" else value
    ),
    "gzip": lambda rows: gzip.compress(nypd_csv(rows)),
    "zip of one csv": lambda rows: zipped({"2012.csv": nypd_csv(rows), "__MACOSX/2012.csv": b"x"}),
}


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inside in files.items():
            archive.writestr(name, inside)
    return content.getvalue()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_years_spelling_reads_as_the_same_table(tmp_path: Path, spelling: str) -> None:
    rows = stops(60)
    plain = read_stops(written(tmp_path, nypd_csv(rows), "plain.csv"))
    other = read_stops(written(tmp_path, SPELLINGS[spelling](rows), "other"))
    assert other.table.to_pydict() == plain.table.to_pydict()
    assert other.counts == plain.counts == {2012: 60}


def test_values_become_dates_times_codes_and_numbers(tmp_path: Path) -> None:
    row = stops(1)[0] | {"datestop": "7042012", "timestop": "5", "city": "BRONX", "pct": "44"}
    row |= {"age": "377", "weight": "180", "ht_feet": "6", "ht_inch": "2", "perobs": ".00"}
    row |= {"detailcm": "020", "race": "P", "frisked": "1", "cs_descr": "", "sex": " "}
    read = read_stops(written(tmp_path, nypd_csv([row]))).table.to_pylist()[0]
    assert str(read["date"]) == "2012-07-04"
    assert str(read["timestop"]) == "00:05:00"
    assert (read["borough"], read["precinct"]) == ("R", "44")
    assert (read["age"], read["weight"], read["height"], read["perobs"]) == (None, 180, 74, 0)
    assert (read["detailcm"], read["race"], read["frisked"]) == ("20", "P", "Y")
    assert (read["cs_descr"], read["sex"]) == ("N", None)


def test_a_stop_without_a_city_is_placed_by_its_precinct_or_left_out(tmp_path: Path) -> None:
    rows = [row | {"city": " "} for row in stops(10)]
    rows[0] |= {"pct": "NA"}
    read = read_stops(written(tmp_path, nypd_csv(rows)))
    assert Counter(read.table["borough"].to_pylist()) == {"B": 1, "M": 2, "Q": 2, "R": 2, "S": 2}
    assert read.notes == ("2012.csv: 1 rows without a borough left out",)


def test_stops_are_put_in_order_of_date_and_time(tmp_path: Path) -> None:
    table = read_stops(written(tmp_path, nypd_csv(stops(200)))).table
    moments = list(zip(table["date"].to_pylist(), table["timestop"].to_pylist(), strict=True))
    assert moments == sorted(moments)


WHOLE_ZIP = zipped({"2012.csv": nypd_csv(stops(50))})
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "expected a CSV file with a header, got an empty file"),
    "an HTML page": (b"<!DOCTYPE html><html>", "expected a CSV file, got an HTML page"),
    "a header only": (nypd_csv(stops(1)).splitlines()[0] + b"\r\n", "got a header without rows"),
    "another table": (b"a,b\r\n1,2\r\n", "expected a column 'datestop', got none"),
    "a renamed column": (
        nypd_csv(stops(5), rename=lambda name: "gender" if name == "sex" else name),
        "expected a column 'sex', got none",
    ),
    "a label of three values": (
        nypd_csv([row | {"frisked": "MAYBE"} for row in stops(5)]),
        "frisked: expected Y, N, 1, 0 or blank, got 'MAYBE'",
    ),
    "no dates": (
        nypd_csv([row | {"datestop": "SOON"} for row in stops(5)]),
        "got 5 of 5 rows without a date of 2003 to 2016",
    ),
    "no borough": (
        nypd_csv([row | {"city": "ALBANY", "pct": "0"} for row in stops(5)]),
        "expected stops in the five boroughs, got none",
    ),
    "a csv cut short": (nypd_csv(stops(5))[:-50], "is damaged or cut short"),
    "a gzip cut short": (gzip.compress(nypd_csv(stops(50)))[:-200], "is damaged or cut short"),
    "a zip cut short": (
        zipped({"2012.csv": nypd_csv(stops(50))})[:-200],
        "is damaged or cut short",
    ),
    "a zip with a wrong byte": (
        (whole := zipped({"2012.csv": nypd_csv(stops(50))}))[:200]
        + bytes([whole[200] ^ 255])
        + whole[201:],
        "is damaged or cut short",
    ),
    "a zip of two": (zipped({"a.csv": b"", "b.csv": b""}), "expected a zip of one CSV file, got 2"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_refused_with_a_reason(tmp_path: Path, what: str) -> None:
    content, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        read_stops(written(tmp_path, content))


# What may be a feature ----------------------------------------------------------------------

USED = [name for name, column in code_book().items() if column.use == FEATURE]


def test_every_published_column_is_used_or_left_out_for_a_reason() -> None:
    assert len(NYPD_COLUMNS) == 112
    assert sorted(code_book()) == sorted(NYPD_COLUMNS)
    assert all(column.use for column in code_book().values())


def test_the_columns_in_use_are_these_and_no_others() -> None:
    assert sorted(USED) == sorted(
        [
            *("ac_assoc", "ac_cgdir", "ac_evasv", "ac_incid", "ac_inves", "ac_other", "ac_proxm"),
            *("ac_rept", "ac_stsnd", "ac_time", "cs_bulge", "cs_casng", "cs_cloth", "cs_descr"),
            *("cs_drgtr", "cs_furtv", "cs_lkout", "cs_objcs", "cs_other", "cs_vcrim"),
            *("age", "build", "detailcm", "ht_feet", "ht_inch", "inout", "offunif", "perobs"),
            *("radio", "sex", "timestop", "trhsloc", "weight"),
        ]
    )


def test_features_come_from_the_columns_in_use_only(tmp_path: Path) -> None:
    stream = stop_and_frisk("BMS", years=2012, home=home_with(tmp_path, stops()))
    sources = {name.split("=")[0].split(":")[0] for name in stream.schema.features}
    assert sources == set(USED) - {"ht_feet", "ht_inch"} | {"height"}


def test_what_is_known_after_the_frisk_changes_no_feature(tmp_path: Path) -> None:
    allowed = {*USED, "frisked", "race", "datestop", "city", "year", "pct"}
    rows = stops()
    changed = [
        {name: value if name in allowed else "1" for name, value in row.items()} for row in rows
    ]
    before = stop_and_frisk("RQS", years=2012, home=home_with(tmp_path / "a", rows))
    after = stop_and_frisk("RQS", years=2012, home=home_with(tmp_path / "b", changed))
    for one, other in zip(before.tasks(0), after.tasks(0), strict=True):
        np.testing.assert_array_equal(one.x, other.x)


def balanced_accuracy(feature: np.ndarray, y: np.ndarray) -> float:
    """The best any threshold on one feature can do, in either direction."""
    values, place = np.unique(feature, return_inverse=True)
    positive = np.bincount(place, y, len(values)).cumsum() / y.sum()
    negative = np.bincount(place, 1 - y, len(values)).cumsum() / (1 - y).sum()
    return float(0.5 + 0.5 * np.abs(positive - negative).max())


def test_balanced_accuracy_of_one_feature_by_hand() -> None:
    y = np.array([0, 0, 1, 1])
    assert balanced_accuracy(np.array([0, 1, 2, 3]), y) == 1.0
    assert balanced_accuracy(np.array([3, 2, 1, 0]), y) == 1.0
    assert balanced_accuracy(np.array([0, 1, 1, 1]), y) == 0.75
    assert balanced_accuracy(np.array([5, 5, 5, 5]), y) == 0.5


@needs_real_data
@pytest.mark.real_data
@pytest.mark.parametrize("route", ["BMS", "RQS"])
def test_no_single_feature_tells_who_was_frisked_in_every_borough(route: str) -> None:
    stream, tasks = real_stream(route)
    boroughs = list(by_domain(tasks).values())
    for place, name in enumerate(stream.schema.features):
        lowest = min(balanced_accuracy(x[:, place], y) for x, y, _ in boroughs)
        assert lowest <= HIGHEST_SINGLE, f"{name} leaks: {lowest:.3f} or more in every borough"


# How tasks are cut --------------------------------------------------------------------------


def by_domain(tasks: Iterable[Task]) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    pieces: dict[str, list[Task]] = {}
    for task in tasks:
        pieces.setdefault(task.domain, []).append(task)
    return {
        domain: (
            np.concatenate([task.x for task in some]),
            np.concatenate([task.y for task in some]),
            np.concatenate([task.group[:, 0] for task in some]),
        )
        for domain, some in pieces.items()
    }


@cache
def real_stream(route: str) -> tuple[Stream, list[Task]]:
    stream = stop_and_frisk(route, home=REAL)
    return stream, list(stream.tasks(0))


def test_three_boroughs_in_order_thirty_two_equal_tasks_each(tmp_path: Path) -> None:
    stream = stop_and_frisk("RQS", years="2012", home=home_with(tmp_path, stops(400)))
    tasks = list(stream.tasks(0))
    assert stream.length == len(tasks) == 96
    assert [task.domain for task in tasks[::32]] == ["Bronx", "Queens", "Staten Island"]
    assert sorted(len(task.y) for task in tasks[:32]) == [2] * 16 + [3] * 16
    assert not stream.seeded


def test_labels_and_groups_are_those_of_the_rows(tmp_path: Path) -> None:
    rows = stops(400)
    stream = stop_and_frisk("Q", years=2012, home=home_with(tmp_path, rows))
    _, y, group = by_domain(stream.tasks(0))["Queens"]
    queens = [row for row in rows if row["city"] == "QUEENS"]
    assert y.sum() == sum(row["frisked"] == "Y" for row in queens)
    assert group.sum() == sum(row["race"] == "B" for row in queens)
    both = sum(row["race"] == "B" and row["frisked"] == "Y" for row in queens)
    assert (y * group).sum() == both


def test_stops_without_a_label_are_left_out_with_a_note(tmp_path: Path) -> None:
    rows = stops(400)
    rows[0] |= {"frisked": " "}  # in Brooklyn
    stream = stop_and_frisk("B", years=2012, home=home_with(tmp_path, rows))
    assert sum(len(task.y) for task in stream.tasks(0)) == 79
    assert stream.notes == ("1 stops without 'frisked' left out",)


def test_nothing_after_the_first_task_changes_how_rows_are_encoded(tmp_path: Path) -> None:
    rows = sorted(stops(400), key=lambda row: int(row["datestop"][:-6]))
    late = [
        row | {"age": "99", "detailcm": "7", "weight": "60"}
        if int(row["datestop"][:-6]) > 6
        else row
        for row in rows
    ]
    before = stop_and_frisk("BMS", years=2012, home=home_with(tmp_path / "a", rows))
    after = stop_and_frisk("BMS", years=2012, home=home_with(tmp_path / "b", late))
    assert before.encoder == after.encoder
    same = [
        np.array_equal(one.x, other.x)
        for one, other in zip(before.tasks(0), after.tasks(0), strict=True)
    ]
    assert all(same[:10])  # before July
    assert not any(same[20:32])


def test_years_follow_each_other_and_come_from_one_file_or_several(tmp_path: Path) -> None:
    early, late = stops(200, year=2012), stops(200, year=2013, seed=1)
    several = home_with(home_with(tmp_path / "a", early, "sqf-2012.csv"), late, "sqf-2013.csv")
    one = home_with(tmp_path / "b", late + early, "nypd-2012-2013.csv")
    streams = [stop_and_frisk("BMS", years="2012-2013", home=home) for home in (several, one)]
    for first, second in zip(*(stream.tasks(0) for stream in streams), strict=True):
        np.testing.assert_array_equal(first.x, second.x)
    table, _ = load_years([2012, 2013], several)
    assert table["date"].to_pylist() == sorted(table["date"].to_pylist())


def test_new_rows_are_encoded_by_the_saved_encoder(tmp_path: Path) -> None:
    home = home_with(tmp_path, stops())
    stream = stop_and_frisk("B", years=2012, home=home)
    table, _ = load_years([2012], home)
    first = next(stream.tasks(0))
    rows = table.filter(pc.equal(table["borough"], "B")).slice(0, len(first.y))
    saved = Encoder.from_json(json.loads(json.dumps(stream.encoder)))
    np.testing.assert_array_equal(saved.transform(rows), first.x)


def test_a_part_of_a_year_is_noted(tmp_path: Path) -> None:
    home = home_with(tmp_path, stops(400, year=2015), "sqf-2015.csv")
    notes = stop_and_frisk("BMS", years=2015, home=home).notes
    assert "2015: 400 stops, where NYPD published 22,563: not the whole year" in notes


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"route": "BXS"}, "expected a route of different boroughs"),
        ({"route": "BBS"}, "expected a route of different boroughs"),
        ({"route": ""}, "expected a route of different boroughs"),
        ({"years": "soon"}, "such as 2014-2016, 2012 or 2009,2011, got 'soon'"),
        ({"years": "2014-2018"}, "expected years of 2003 to 2016"),
        ({"years": "2016-2014"}, "expected years of 2003 to 2016"),
    ],
)
def test_routes_and_years_that_are_not_there_are_refused(wish: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stop_and_frisk(**wish)


@pytest.mark.parametrize(
    ("years", "command"),
    [
        ("2014-2016", r"of 2014, 2015, 2016 is not in .*: fairsaoml data get stop-and-frisk$"),
        ("2009,2012", r"of 2009 is not in .*: fairsaoml data get stop-and-frisk --years 2009$"),
    ],
)
def test_missing_years_say_the_command_that_gets_them(
    tmp_path: Path, years: str, command: str
) -> None:
    with pytest.raises(DataError, match=command):
        stop_and_frisk(years=years, home=home_with(tmp_path, stops(5)))


def test_a_borough_with_fewer_stops_than_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Brooklyn: expected at least 32 rows"):
        stop_and_frisk(years=2012, home=home_with(tmp_path, stops(100)))


@needs_real_data
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("route", "width", "facts"),
    [
        (
            "BMS",
            71,
            {
                "Brooklyn": (23_282, 15_655, 15_300, 0.1068),
                "Manhattan": (13_718, 8_657, 7_203, 0.0130),
                "Staten Island": (7_447, 4_427, 3_736, 0.1128),
            },
        ),
        (
            "RQS",
            64,
            {
                "Bronx": (14_038, 10_240, 7_009, 0.0240),
                "Queens": (22_269, 14_562, 9_519, 0.1028),
                "Staten Island": (7_447, 4_427, 3_736, 0.1128),
            },
        ),
    ],
)
def test_facts_of_the_real_streams(route: str, width: int, facts: dict) -> None:
    stream, tasks = real_stream(route)
    found = by_domain(tasks)
    assert (stream.length, len(stream.schema.features), stream.notes) == (96, width, ())
    assert stream.schema.attributes[0].levels == ("not black", "black")
    assert list(found) == list(facts)
    for domain, (x, y, group) in found.items():
        black = group == 1
        rows, frisked, members, gap = facts[domain]
        assert (len(y), int(y.sum()), int(black.sum())) == (rows, frisked, members)
        assert y[black].mean() - y[~black].mean() == pytest.approx(gap, abs=5e-5)
        assert np.isfinite(x).all()
        sizes = {len(task.y) for task in tasks if task.domain == domain}
        assert sizes == {rows // 32, rows // 32 + 1}


@needs_real_data
@pytest.mark.real_data
def test_the_gap_moves_from_quarter_to_quarter() -> None:
    found = frisk_gaps(load_years([2014, 2015, 2016], REAL)[0])
    staten = [quarter.gap for quarter in found["Staten Island"]]
    assert len(staten) == 12
    assert (min(staten), max(staten)) == pytest.approx((-0.017, 0.244), abs=5e-4)


@needs_real_data
@pytest.mark.real_data
def test_the_real_header_of_2011_and_its_first_stops_are_read() -> None:
    read = read_stops(REAL / "stop-and-frisk" / "nypd-sqf-2011-first2000.csv.gz")
    assert (read.table.num_rows, read.counts, read.notes) == (2000, {2011: 2000}, ())
    assert pc.sum(pc.equal(read.table["frisked"], "Y")).as_py() == 1343
    assert read.table["timestop"].null_count == 0


@needs_real_data
@pytest.mark.real_data
def test_the_real_files_have_the_published_columns() -> None:
    with gzip.open(REAL / "stop-and-frisk" / "nypd-sqf-2014-2016.csv.gz", "rt") as text:
        assert next(csv.reader(text)) == ["date", *NYPD_COLUMNS]


# Arrests ------------------------------------------------------------------------------------


def copy_of_2011(rows: list[Stop]) -> bytes:
    """The same stops in the few columns of the copy."""
    kept = [
        {
            "date": with_iso_dates("datestop", row["datestop"]),
            "time": with_iso_dates("timestop", row["timestop"]),
            "race": row["race"],
            "arstmade": row["arstmade"],
            "borough": row["city"].title(),
            "pct_geo": row["pct"],
        }
        for row in rows
    ]
    return nypd_csv(kept)


def test_arrests_are_cut_every_ten_days_in_five_boroughs(tmp_path: Path) -> None:
    home = home_with(tmp_path, stops(4000, year=2011), "sqf-2011.csv")
    stream = stop_and_frisk_arrests(home=home)
    tasks = list(stream.tasks(0))
    boroughs = ["Brooklyn", "Manhattan", "Queens", "Bronx", "Staten Island"]
    assert [task.domain for task in tasks[::37]] == boroughs
    assert stream.length == len(tasks) == 5 * 37
    assert sum(len(task.y) for task in tasks) == 4000
    assert stream.schema.attributes[0].name == "race=B"


def test_a_task_of_arrests_holds_ten_days(tmp_path: Path) -> None:
    day = {"year": "2011", "city": "BROOKLYN", "pct": "75"}
    dates = ["1012011", "1102011", "1112011", "1312011", "12312011"]
    rows = [stops(1, year=2011)[0] | day | {"datestop": date} for date in dates]
    stream = stop_and_frisk_arrests(home=home_with(tmp_path, rows, "sqf-2011.csv"))
    # 1-10 January, 11-20 January, 31 January, 31 December; stretches without stops are no tasks.
    assert [len(task.y) for task in stream.tasks(0)] == [2, 1, 1, 1]


def test_the_copy_and_the_full_record_give_the_same_tasks(tmp_path: Path) -> None:
    rows = stops(800, year=2011)
    full = stop_and_frisk_arrests(home=home_with(tmp_path / "a", rows, "sqf-2011.csv"))
    folder = tmp_path / "b" / "stop-and-frisk"
    written(folder, copy_of_2011(rows), "nypd-sqf-2011-arrests.csv")
    copy = stop_and_frisk_arrests(home=tmp_path / "b")
    assert full.encoder == copy.encoder
    for one, other in zip(full.tasks(0), copy.tasks(0), strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)
        np.testing.assert_array_equal(one.group, other.group)


def test_arrests_know_time_and_precinct_and_nothing_else(tmp_path: Path) -> None:
    stream = stop_and_frisk_arrests(home=home_with(tmp_path, stops(100, year=2011), "2011.csv"))
    sources = {name.split("=")[0].split(":")[0] for name in stream.schema.features}
    assert sources == {"timestop", "weekday", "precinct"}
    task = next(stream.tasks(0))
    place = stream.schema.features.index(f"precinct={CITIES['BROOKLYN']}")
    assert (task.x[:, place] == 1).all()


def test_missing_arrests_say_the_command_that_gets_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"get it with: fairsaoml data get stop-and-frisk-arrests$"):
        stop_and_frisk_arrests(home=tmp_path)


@needs_real_data
@pytest.mark.real_data
def test_facts_of_the_real_arrests() -> None:
    stream = stop_and_frisk_arrests(home=REAL)
    tasks = list(stream.tasks(0))
    sizes = [len(task.y) for task in tasks]
    assert (stream.length, len(stream.schema.features)) == (185, 88)
    assert (min(sizes), max(sizes), sum(sizes)) == (245, 7629, 685_724 - 25_314)
    facts = {
        domain: (len(y), int(y.sum()), int(group.sum()))
        for domain, (_, y, group) in by_domain(tasks).items()
    }
    assert facts == {
        "Brooklyn": (223_831, 9_956, 140_608),
        "Manhattan": (135_200, 10_937, 69_231),
        "Queens": (146_445, 9_159, 58_515),
        "Bronx": (128_496, 7_672, 60_886),
        "Staten Island": (26_438, 1_634, 9_695),
    }
    assert stream.notes == ("nypd-sqf-2011-arrests.csv.gz: 25,314 rows without a borough left out",)
