"""A table of your own as a stream: what is read, how it is cut, what is refused."""

import gc
import gzip
import json
import re
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.catalog import setting_names
from fairsaoml.streams.table import survey as survey_module
from fairsaoml.streams.table import text as text_module
from fairsaoml.streams.table.cutting import Every
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.reading import read_table
from fairsaoml.streams.table.stream import stream_from_table

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "stop-and-frisk"


def people(rows=400, seed=0):
    """A hiring table with a bit of everything, one row an hour."""
    rng = np.random.default_rng(seed)
    hours = np.datetime64("2020-01-01T00:00:00") + np.arange(rows) * np.timedelta64(1, "h")
    return pa.table(
        {
            "id": np.arange(rows),
            "when": hours,
            "region": np.repeat(["north", "south"], [rows // 2, rows - rows // 2]),
            "age": rng.integers(18, 70, rows),
            "job": rng.choice(["cook", "nurse", "smith"], rows),
            "pay": rng.lognormal(7, 1, rows),
            "race": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "sex": rng.choice(["f", "m"], rows),
            "hired": rng.choice(["no", "yes"], rows),
        }
    )


def write(tmp_path, table, name="people.csv", **options):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(table, path, **options)
    else:
        table.to_pandas().to_csv(path, index=False, **options)
    return path


def hiring(source, **options):
    return stream_from_table(source, **{"label": "hired", "sensitive": "sex", **options})


def same(one, other):
    """Two streams give the same tasks."""
    ones, others = list(one.tasks(0)), list(other.tasks(0))
    assert len(ones) == len(others)
    for a, b in zip(ones, others, strict=True):
        np.testing.assert_array_equal(a.y, b.y)
        np.testing.assert_array_equal(a.group, b.group)
        np.testing.assert_allclose(a.x, b.x, atol=1e-6)
        assert (a.domain, a.warnings) == (b.domain, b.warnings)


def replaced(table, column, values):
    return table.set_column(table.column_names.index(column), column, pa.array(values))


# Every door leads to the same rows


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_a_file_gives_the_same_tasks_as_the_table_it_was_written_from(tmp_path, name):
    path = write(tmp_path, people(), name)
    stream = hiring(path, rows=90, time="when", domain="region")
    same(stream, hiring(people(), rows=90, time="when", domain="region"))
    assert stream.name == "people"
    assert stream.settings["source"] == str(path)


def test_tabs_and_semicolons_separate_columns_too(tmp_path):
    expected = hiring(people(), rows=100)
    same(hiring(write(tmp_path, people(), "p.tsv", sep="\t"), rows=100), expected)
    semicolons = hiring(write(tmp_path, people(), "p.csv", sep=";"), rows=100)
    same(semicolons, expected)
    assert "p.csv: columns are separated by ';'" in semicolons.notes


@pytest.mark.parametrize(
    "door",
    [
        lambda t: t.to_pandas(),
        lambda t: t.to_batches()[0],
        lambda t: [t.slice(0, 7), t.slice(7, 293), t.slice(300)],
        lambda t: iter([t.slice(0, 130).to_pandas(), t.slice(130)]),
        lambda t: lambda: iter(t.to_batches(max_chunksize=33)),
        lambda t: t.to_reader(max_chunksize=50),
    ],
    ids=["pandas", "record batch", "list", "iterator", "function", "reader"],
)
def test_a_dataframe_or_batches_give_the_same_tasks_as_the_table(door):
    same(hiring(door(people()), rows=100), hiring(people(), rows=100))


def test_polars_frames_lazy_or_not_are_tables_too():
    frame = polars.from_arrow(people())
    same(hiring(frame, rows=100), hiring(people(), rows=100))
    same(hiring(frame.lazy(), rows=100), hiring(people(), rows=100))


def test_every_pass_over_a_function_or_a_table_is_the_same():
    for source in (people(), lambda: iter([people()])):
        stream = hiring(source, rows=100)
        same(stream, stream)


def test_an_iterator_can_be_passed_over_once_and_says_so_after():
    stream = hiring(iter([people()]), rows=100)
    assert len(list(stream.tasks(0))) == 4
    with pytest.raises(DataError, match="give a function that returns a fresh iterator"):
        list(stream.tasks(0))


def test_a_task_is_given_as_soon_as_its_last_row_is_there():
    asked = []

    def endless():
        for number in range(10**9):
            asked.append(number)
            yield people(100, seed=number)

    tasks = hiring(endless(), rows=200).tasks(0)
    next(tasks)
    assert asked == [0, 1]


def test_memory_does_not_grow_with_the_length_of_an_iterator_stream():
    def batches(count):
        return (people(500, seed=number % 7) for number in range(count))

    def peak(count):
        stream = hiring(batches(count), rows=700)
        tasks = stream.tasks(0)
        next(tasks)
        gc.collect()
        tracemalloc.start()
        arrow = 0
        for _ in tasks:
            arrow = max(arrow, pa.total_allocated_bytes())
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return python, arrow

    short, long = peak(20), peak(120)
    slack = 500_000  # about ten batches; the longer stream has a hundred more
    assert long[0] < short[0] + slack
    assert long[1] < short[1] + slack


def test_a_parquet_file_is_read_in_batches_and_not_as_a_whole(tmp_path, monkeypatch):
    rows = 60_000
    wide = people(rows).append_column("note", pa.array(["x" * 200] * rows))
    path = write(tmp_path, wide, "large.parquet", row_group_size=2_000)
    monkeypatch.setattr("fairsaoml.streams.table.reading.BATCH_ROWS", 2_000)
    stream = hiring(path, rows=1_000, time="when", columns=["note", "age"])
    assert stream.length == 60
    del wide
    gc.collect()
    before, most = pa.total_allocated_bytes(), 0
    for task in stream.tasks(0):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(task.y) == 1_000
    assert most < 12_000_000 / 4  # the column of notes alone is 12 MB


CUTS = {
    "nothing said": {},
    "tasks": {"tasks": 7},
    "rows": {"rows": 300, "time": "when"},
    "calendar": {"every": "1W", "time": "when"},
    "domain": {"every": "1M", "time": "when", "domain": "region"},
}


@pytest.fixture
def amount_read(monkeypatch):
    """How much was read so far: bytes of text, rows of Parquet."""
    read = {"bytes": 0, "rows": 0}
    open_text, iter_batches = text_module._bytes, pq.ParquetFile.iter_batches

    class Counting:
        def __init__(self, path):
            self.file = open_text(path)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def read(self, size=-1):
            block = self.file.read(size)
            read["bytes"] += len(block)
            return block

    def counted(*words, **options):
        for batch in iter_batches(*words, **options):
            read["rows"] += batch.num_rows
            yield batch

    monkeypatch.setattr(text_module, "_bytes", Counting)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    return read


@pytest.mark.parametrize("options", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("order", ["in order", "to be sorted", "day or month first"])
def test_a_file_is_read_at_most_twice_for_a_run_whatever_cuts_it(
    tmp_path, amount_read, options, order
):
    rows = 4_000
    table = people(rows)
    if order == "to be sorted":
        table = table.take(list(range(rows - 1, -1, -1)))
    if order == "day or month first":
        options = options | ({"time_format": "day/month/year"} if "time" in options else {})
        days = table["when"].to_pandas().dt.strftime("%d/%m/%Y")
        table = replaced(table, "when", days)
    text, parquet = write(tmp_path, table), write(tmp_path, table, "people.parquet")
    for path in (text, parquet):
        stream = hiring(path, **options)
        assert sum(len(task.y) for task in stream.tasks(0)) == rows
    assert amount_read["rows"] == 2 * rows
    assert amount_read["bytes"] <= 2 * text.stat().st_size + text_module.HEAD_BYTES


def test_a_stray_byte_in_the_last_row_is_read_as_latin_1_and_changes_nothing_before_it(tmp_path):
    races = ["ätna", "b"] * 2_000
    path = write(tmp_path, replaced(people(4_000), "race", races), encoding="utf-8")
    clean = hiring(path, rows=2_000, sensitive="race")
    path.write_bytes(path.read_bytes().rstrip(b"\n") + b"\xe9\n")
    with pytest.raises(DataError, match=r"got also '(yes|no)é'"):
        hiring(path, rows=2_000, sensitive="race")
    stream = hiring(path, rows=2_000, label="sex", sensitive="race", positive="m", drop=["hired"])
    assert any("not UTF-8, the first is 0xe9: they are read as Latin-1" in n for n in stream.notes)
    assert stream.schema.attributes == clean.schema.attributes == (("race", ("b", "ätna")),)
    assert [len(task.y) for task in stream.tasks(0)] == [2_000, 2_000]
    assert read_table(path)["hired"][3_999].as_py() in ("yesé", "noé")


READ_SLOWLY = """
import sys, time
from pathlib import Path
from fairsaoml.core.errors import DataError
from fairsaoml.streams.table import text

class Slow:
    def __init__(self, file):
        self.file, self.blocks = file, 0

    def read(self, size=-1):
        self.blocks += 1
        time.sleep(0.2 if self.blocks > 3 else 0)
        return self.file.read(size)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

fast = text._bytes
text._bytes = lambda path: Slow(fast(path))
table = text.TextTable(Path(sys.argv[1]))
begun = table.batches(table.columns)
try:
    if "held" in sys.argv:
        next(begun)
        sys.exit(0)
    print(sum(batch.num_rows for batch in begun))
except DataError as error:
    sys.exit(f"told: {error}")
"""


def test_a_broken_line_ends_a_process_that_still_reads_ahead_with_its_error_alone(tmp_path):
    rows = [f"yes,{'m' * 10_000}"] * 1_000
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(["hired,sex", "yes,m,3", *rows]))
    words = [sys.executable, "-c", READ_SLOWLY, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("told: expected rows of 2 values")
    assert len(done.stderr.splitlines()) == 1


def test_a_process_ends_in_the_midst_of_a_pass_that_reads_ahead(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["hired,sex", *[f"yes,{'m' * 10_000}"] * 1_000]))
    words = [sys.executable, "-c", READ_SLOWLY, str(path), "held"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_pass_that_ends_leaves_nothing_in_the_hands_of_other_threads(tmp_path, monkeypatch):
    lent, real = [], text_module._wait_until_empty

    def wait(given):
        real(given)
        lent.append(len(given))

    monkeypatch.setattr(text_module, "_wait_until_empty", wait)
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["hired,sex", *[f"yes,{'m' * 10_000}"] * 1_000]))
    for _ in range(10):
        table = text_module.TextTable(path)
        assert sum(batch.num_rows for batch in table.batches(table.columns)) == 1_000
        begun = table.batches(table.columns)
        next(begun)
        begun.close()
    assert lent == [0] * 20


# Cutting


def sizes(stream):
    found = [len(task.y) for task in stream.tasks(0)]
    assert stream.length in (None, len(found))
    return found


def test_the_three_ways_to_cut():
    assert sizes(hiring(people(), tasks=3)) == [133, 133, 134]
    assert sizes(hiring(people(), rows=150)) == [150, 150, 100]
    assert sizes(hiring(people(), time="when", every="10D")) == [240, 160]
    assert sizes(hiring(people(1000), time="when", every="1M")) == [744, 256]
    assert sizes(hiring(people(), time="when", every="1W")) == [120, 168, 112]  # a Wednesday


@pytest.mark.parametrize(
    ("rows", "tasks"), [(60, 2), (500, 10), (3_000, 20), (40_000, 40), (40_999, 40)]
)
def test_tasks_nobody_sized_are_sensible(rows, tasks):
    found = sizes(hiring(people(rows)))
    assert len(found) == tasks
    assert max(found) - min(found) <= 1


def test_batches_of_unknown_number_are_cut_every_thousand_rows():
    assert sizes(hiring(iter([people(2_500)]))) == [1000, 1000, 500]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 300), st.integers(1, 20), st.lists(st.integers(0, 299), max_size=6))
def test_cutting_loses_no_row_and_does_not_depend_on_the_batches(rows, tasks, edges):
    table = pa.table(
        {"v": np.arange(rows) + 0.5, "s": np.arange(rows) % 2, "y": np.arange(rows) % 2}
    )
    edges = sorted({0, rows, *(edge for edge in edges if edge < rows)})
    batches = [table.slice(low, high - low) for low, high in pairwise(edges)]
    if 2 * tasks > rows:
        return
    roles = {"label": "y", "sensitive": "s"}
    for cutting in ({"tasks": tasks}, {"rows": max(2, rows // tasks)}):
        whole = stream_from_table(table, **roles, **cutting)
        same(stream_from_table(batches, **roles, **cutting), whole)
        ys = np.concatenate([task.y for task in whole.tasks(0)])
        np.testing.assert_array_equal(ys, np.arange(rows) % 2)


def test_calendar_windows_agree_with_pandas():
    times = pd.to_datetime("2011-03-09 17:20") + pd.to_timedelta(np.arange(0, 900, 7), unit="D")
    seconds = times.to_numpy().astype("M8[s]").astype(np.int64).astype(float)
    months = (times.year - 2011) * 12 + times.month - 3
    np.testing.assert_array_equal(Every.parse("2M").windows(seconds, seconds[0]), months // 2)
    quarters = (times.year - 2011) * 4 + times.quarter - 1
    np.testing.assert_array_equal(Every.parse("Q").windows(seconds, seconds[0]), quarters)
    np.testing.assert_array_equal(Every.parse("Y").windows(seconds, seconds[0]), times.year - 2011)
    weeks = (times.normalize() - pd.to_datetime("2011-03-07")).days // 7
    np.testing.assert_array_equal(Every.parse("W").windows(seconds, seconds[0]), weeks)
    days = (times.normalize() - pd.to_datetime("2011-03-09")).days // 10
    np.testing.assert_array_equal(Every.parse("10D").windows(seconds, seconds[0]), days)


def test_windows_without_rows_are_passed_over_with_a_warning():
    table = people(48)
    gap = pa.concat_tables([table.slice(0, 24), replaced(
        table.slice(24), "when", np.datetime64("2020-01-09T00:00:00") + np.arange(24)
    )])  # fmt: skip
    stream = hiring(gap, time="when", every="1D")
    assert stream.length == 2
    assert list(stream.tasks(0))[1].warnings[0] == "no rows in the 7 windows before this one"


def test_unix_times_are_times():
    seconds = people()["when"].cast(pa.timestamp("s")).cast(pa.int64())
    expected = sizes(hiring(people(), time="when", every="1W"))
    for unit in (1, 1000):
        column = pa.array(np.asarray(seconds) * unit)
        assert (
            sizes(hiring(replaced(people(), "when", column), time="when", every="1W")) == expected
        )
    with pytest.raises(DataError, match=r"seconds since 1970.*cut by number of rows"):
        hiring(replaced(people(), "when", np.arange(400)), time="when", every="1D")
    assert sizes(hiring(replaced(people(), "when", np.arange(400)), time="when", rows=200))


def test_a_table_or_file_out_of_order_is_sorted_and_ties_keep_their_order(tmp_path):
    days = people()["when"].cast(pa.date32())
    table = replaced(people(), "when", days.combine_chunks())
    shuffle = np.random.default_rng(1).permutation(400)
    mixed = table.take(shuffle)
    expected = mixed.to_pandas().sort_values("when", kind="stable")
    for source in (mixed, write(tmp_path, mixed), write(tmp_path, mixed, "people.parquet")):
        stream = hiring(source, time="when", rows=100)
        assert any("have been sorted" in note for note in stream.notes)
        same(stream, hiring(expected, time="when", rows=100))


def test_a_file_too_large_to_sort_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(survey_module, "SORTABLE_BYTES", 10)
    path = write(tmp_path, people().take(list(range(399, -1, -1))))
    with pytest.raises(DataError, match="sort them by time first"):
        hiring(path, time="when")


def test_batches_out_of_order_are_refused_where_it_happens():
    back = [people(200).slice(100), people(200).slice(0, 100)]
    stream = hiring(lambda: iter(back), time="when", rows=50)
    with pytest.raises(DataError, match="got 2020-01-01 after 2020-01-09 07:00:00 at row 101"):
        list(stream.tasks(0))


def test_a_domain_names_a_task_after_most_of_its_rows_and_changes_nothing_else():
    stream = hiring(people(), rows=160, domain="region")
    tasks = list(stream.tasks(0))
    assert [task.domain for task in tasks] == ["north", "south", "south"]
    assert "2 domains in one task" in tasks[1].warnings[0]
    for task, other in zip(
        tasks, hiring(people(), rows=160, drop=["region"]).tasks(0), strict=True
    ):
        np.testing.assert_array_equal(task.x, other.x)


# No leakage


@pytest.mark.parametrize(
    "cut",
    [{"rows": 100}, {"every": "2D"}, {"tasks": 4}, {}, {"rows": 70, "domain": "region"}],
    ids=str,
)
def test_nothing_after_the_first_task_changes_what_is_fitted_and_no_task_sees_the_next(cut):
    table = people()
    future = people(seed=9)
    future = replaced(future, "pay", np.asarray(future["pay"]) * 1e6)
    future = replaced(future, "job", ["pilot"] * 400)
    future = replaced(future, "race", ["z"] * 400)
    # What is later lasts longer, too, but where the cut goes by the number of rows.
    longer = [] if set(cut) <= {"tasks"} else [future.slice(300)]
    other = pa.concat_tables([table.slice(0, 200), future.slice(200), *longer])
    options = {**cut, "sensitive": ["sex", "race"], "time": "when"}
    one, two = hiring(table, **options), hiring(other, **options)
    assert one.encoder == two.encoder
    assert one.schema == two.schema
    seen = compared = 0
    for a, b in zip(one.tasks(0), two.tasks(0), strict=False):
        seen += len(a.y)
        if seen > 200:
            break
        compared += 1
        for part, other_part in zip(a[:3], b[:3], strict=True):
            assert part.tobytes() == other_part.tobytes()
        assert (a.domain, a.period, a.warnings) == (b.domain, b.period, b.warnings)
    assert compared


def test_roles_are_no_inputs_unless_time_or_domain_are_named_as_such():
    stream = hiring(people(), time="when", domain="region", sensitive=["sex", "race=a"])
    assert {name.split("=")[0] for name in stream.schema.features} == {"age", "job", "pay"}
    inputs = ["when", "region", "age"]
    named = hiring(people(), time="when", domain="region", columns=inputs, rows=300)
    features = {name.split(":")[0] for name in named.schema.features}
    assert features == {"when", "region=south", "age"}
    for role in ("hired", "sex"):
        with pytest.raises(ConfigError, match="an input must not be"):
            hiring(people(), columns=["age", role])


def test_columns_and_drop_choose_the_inputs():
    assert hiring(people(), columns=["pay", "age"]).schema.features == ("pay", "age")
    dropped = hiring(people(), drop=["job", "race", "when", "region", "pay"])
    assert dropped.schema.features == ("age",)
    assert any("id" in note and "left out" in note for note in dropped.notes)
    assert "id" in hiring(people(), columns=["id", "age"]).schema.features  # asked for, so kept


def test_a_column_that_restates_label_or_group_is_pointed_out():
    copy = people().append_column("outcome", people()["hired"])
    copy = copy.append_column("gender", people()["sex"])
    notes = hiring(copy).notes
    assert any("likely leak" in note and "outcome (AUC 1.000)" in note for note in notes)
    assert any("restate sex (m)" in note and "gender (AUC 1.000)" in note for note in notes)
    assert not any("AUC" in note for note in hiring(people()).notes)


def test_a_category_that_gives_the_label_away_is_a_leak_and_one_that_merely_differs_is_not():
    yes = np.asarray(people()["hired"]) == "yes"
    rng = np.random.default_rng(1)
    tells = np.where(yes, rng.choice(["paid", "settled"], 400), rng.choice(["late", "sued"], 400))
    many = rng.choice([f"town {number}" for number in range(25)], 400)
    table = people().append_column("status", pa.array(tells)).append_column("town", pa.array(many))
    [leak] = [note for note in hiring(table, tasks=2).notes if "likely leak" in note]
    assert "status (AUC 1.000)" in leak
    assert "town" not in leak


def test_a_column_that_gives_the_label_away_only_later_is_a_leak_too():
    yes = np.asarray(people()["hired"]) == "yes"
    late = np.where(np.arange(400) < 200, np.random.default_rng(1).normal(size=400), yes)
    table = people().append_column("score", pa.array(late))
    for shuffled in (table, table.take(np.random.default_rng(2).permutation(400))):
        # A small table's last rows may reach into its first task, so they are cut here.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(survey_module, "TASK_ROWS", 100)
            notes = hiring(shuffled, time="when", rows=100).notes
        [leak] = [note for note in notes if "likely leak" in note]
        assert "in the table's last rows, and did not in the first task" in leak
        assert leak.endswith(": score (AUC 1.000)")


def test_a_word_within_another_word_does_not_look_protected():
    table = people().append_column("mileage", people()["pay"]).drop_columns(["age", "race"])
    assert not any("may be protected" in note for note in hiring(table).notes)


def test_inputs_that_look_protected_are_named():
    [note] = [note for note in hiring(people()).notes if "may be protected" in note]
    assert "age, race;" in note
    assert not any("may be protected" in n for n in hiring(people(), drop=["age", "race"]).notes)


# Labels and groups


@pytest.mark.parametrize(
    ("pair", "positive"),
    [
        ((0, 1), "1"),
        ((0.0, 1.0), "1"),
        ((-1, 1), "1"),
        ((1, 2), "2"),
        ((False, True), "True"),
        (("no", "yes"), "yes"),
        (("-", "+"), "+"),
        (("<=50K", ">50K"), ">50K"),
        (("bad", "good"), "good"),
        (("denied", "Approved"), "Approved"),
        (("rejected", "approved"), "approved"),
        (("refused", "granted"), "granted"),
        (("rejected", "hired"), "hired"),
        (("decline", "accept"), "accept"),
        (("not admitted", "admitted"), "admitted"),
        (("inactive", "active"), "active"),
        (("Charged Off", "Fully Paid"), "Fully Paid"),
        (("default", "paid"), "paid"),
        (("no default", "default"), "default"),
        (("low", "high"), "high"),
        (("fail", "pass"), "pass"),
        (("lost", "won"), "won"),
        (("N", "J"), "J"),
        (("N", "O"), "O"),
        (("F", "P"), "P"),
        (("nein", "ja"), "ja"),
        (("Non", "Oui"), "Oui"),
        (("No", "Sí"), "Sí"),
        (("não", "sim"), "sim"),
        (("nie", "tak"), "tak"),
        (("ne", "da"), "da"),
        (("нет", "да"), "да"),
        (("abgelehnt", "bewilligt"), "bewilligt"),
        (("refusé", "accordé"), "accordé"),
    ],
)
def test_without_a_word_the_usual_value_is_positive_and_a_note_says_which(pair, positive):
    values = [pair[code] for code in (np.asarray(people()["hired"]) == "yes").astype(int)]
    stream = hiring(replaced(people(), "hired", values), rows=100)
    assert stream.encoder["label"]["positive"] == positive
    assert any(f"{positive!r} counts as positive" in note for note in stream.notes)
    turned = hiring(replaced(people(), "hired", values), rows=100, positive=pair[0])
    for one, other in zip(stream.tasks(0), turned.tasks(0), strict=True):
        np.testing.assert_array_equal(one.y, 1 - other.y)


def test_which_of_two_unknown_words_is_positive_is_asked_for():
    values = np.where(np.asarray(people()["hired"]) == "yes", "B", "A 1")
    table = replaced(people(), "hired", values)
    asked = (
        r"which value of the label 'hired' is the positive one, got 'A 1' \(\d+ rows\) and 'B' "
        r"\(\d+ rows\) in the first task; add --positive 'A 1' or --positive B"
    )
    with pytest.raises(DataError, match=asked):
        hiring(table, rows=100)
    same(hiring(table, rows=100, positive="B"), hiring(people(), rows=100))


def test_how_numbers_were_read_is_a_note_and_ranges_read_them_alike():
    pay = [f"{value},25 €" for value in range(500, 900)]
    table = replaced(people(), "pay", pay)
    stream = hiring(table, rows=100, sensitive=["sex", "pay>520"])
    assert "read as numbers: pay ('500,25 €' as 500.25)" not in stream.notes  # it is no input
    assert next(stream.tasks(0)).group[:, 1].tolist() == [0] * 20 + [1] * 80
    assert "read as numbers: pay ('500,25 €' as 500.25)" in hiring(table, rows=100).notes


def test_an_empty_cell_is_no_odd_way_to_write_a_number(tmp_path):
    ages = ["", "n/a", "$31", *map(str, people()["age"].to_pylist()[3:])]
    pays = ["", "n/a", *map(str, people()["pay"].to_pylist()[2:])]
    table = replaced(replaced(people(), "age", ages), "pay", pays)
    stream = hiring(write(tmp_path, table), rows=100)
    assert {"age", "pay"} <= {*stream.schema.features}
    assert [note for note in stream.notes if "read as numbers" in note] == [
        "read as numbers: age ('$31' as 31)"
    ]


def test_groups_that_are_known_to_come_are_levels_from_the_start():
    races = people()["race"].to_pylist()
    races[250:260] = ["X"] * 10
    table = replaced(people(), "race", races)
    unknown = hiring(table, rows=100, sensitive="race")
    assert [*unknown.tasks(0)][2].new_groups == {"race": {"X": 10}}
    for known in (["race=x"], "race=x", {"race": ["x"]}):
        stream = hiring(table, rows=100, sensitive="race", known_groups=known)
        assert stream.settings["known_groups"] == {"race": ["x"]}
        assert stream.schema.attributes[0].levels == ("a", "b", "c", "x")
        task = [*stream.tasks(0)][2]
        assert task.group[50:60, 0].tolist() == [3] * 10
        assert (task.new_groups, task.warnings) == ({}, ())
        assert any(re.fullmatch("race: fewer than 10 rows .* in .*x", n) for n in stream.notes)
    asked = {"rows": 100, "known_groups": ["race=x"]}
    pairs = hiring(table, sensitive="sex*race", **asked).schema.attributes[0].levels
    assert {"f & x", "m & x"} < {*pairs}
    one = hiring(table, sensitive="race=x", **asked)
    assert one.schema.attributes[0].levels == ("not x", "x")
    assert [*one.tasks(0)][2].group[50:60, 0].tolist() == [1] * 10


def test_a_group_that_the_first_task_lacks_is_refused_with_the_way_to_name_it():
    with pytest.raises(DataError, match=r"if it comes later, add --known-groups race=x$"):
        hiring(people(), sensitive="race=x")
    alone = replaced(people(), "sex", ["f"] * 200 + ["m"] * 200)
    with pytest.raises(DataError, match=r"those that come later: --known-groups sex=VALUE$"):
        hiring(alone, rows=100)
    levels = hiring(alone, rows=100, known_groups=["sex=m"]).schema.attributes[0].levels
    assert levels == ("f", "m")
    with pytest.raises(ConfigError, match="of a sensitive column, got 'rase'; did you mean 'race'"):
        hiring(people(), sensitive="race", known_groups=["rase=x"])
    with pytest.raises(ConfigError, match="expected known groups as COLUMN=A,B, got 'race'"):
        hiring(people(), sensitive="race", known_groups=["race"])


def test_rows_without_a_label_are_left_out_and_counted():
    labels = people()["hired"].to_pylist()
    labels[3] = labels[150] = labels[151] = None
    tasks = list(hiring(replaced(people(), "hired", labels), rows=100).tasks(0))
    assert [len(task.y) for task in tasks] == [99, 98, 100, 100]
    assert tasks[1].warnings == ("2 rows without a label were left out",)


def test_a_task_in_which_no_row_has_a_label_is_empty():
    labels = people()["hired"].to_pylist()
    labels[100:200] = [None] * 100
    stream = hiring(replaced(people(), "hired", labels), rows=100, sensitive=["sex", "race"])
    empty = list(stream.tasks(0))[1]
    assert empty.x.shape == (0, len(stream.schema.features))
    assert empty.group.shape == (0, 2)


def test_a_first_task_of_one_class_is_completed_from_what_is_usual_or_asked_for():
    labels = [0] * 100 + [0, 1] * 150
    stream = hiring(replaced(people(), "hired", labels), rows=100)
    assert any("one label only" in note for note in stream.notes)
    assert [task.y.mean() for task in stream.tasks(0)] == [0, 0.5, 0.5, 0.5]
    words = ["rejected"] * 100 + ["rejected", "taken"] * 150
    stream = hiring(replaced(people(), "hired", words), rows=100, positive="taken")
    assert [task.y.mean() for task in stream.tasks(0)] == [0, 0.5, 0.5, 0.5]
    with pytest.raises(DataError, match="got only 'rejected' in the first task; make the tasks"):
        hiring(replaced(people(), "hired", words), rows=100)


def test_groups_are_the_levels_of_the_first_task_and_later_ones_go_to_unseen():
    races = people()["race"].to_pylist()
    races[250], races[251] = "x", None
    stream = hiring(replaced(people(), "race", races), rows=200, sensitive="race")
    (attribute,) = stream.schema.attributes
    assert attribute.levels == ("a", "b", "c")
    tasks = list(stream.tasks(0))
    expected = [attribute.levels.index(race) for race in races[:200]]
    np.testing.assert_array_equal(tasks[0].group[:, 0], expected)
    assert tasks[1].group[50:52, 0].tolist() == [3, 3]
    assert tasks[1].warnings == (
        "race: 1 rows without a value, counted apart",
        "race: 1 rows in groups the first task had not ('x'), counted apart",
    )


def test_one_value_against_the_rest():
    stream = hiring(people(), rows=200, sensitive="race=b")
    (attribute,) = stream.schema.attributes
    assert attribute == ("race=b", ("not b", "b"))
    codes = next(stream.tasks(0)).group[:, 0]
    np.testing.assert_array_equal(codes, np.asarray(people()["race"])[:200] == "b")
    races = people()["race"].to_pylist()
    races[5], races[6] = None, "new"  # unknown whether it is b; surely not b
    codes = next(hiring(replaced(people(), "race", races), sensitive="race=b").tasks(0)).group[:, 0]
    assert codes[5:7].tolist() == [2, 0]


def test_a_row_without_a_group_is_in_no_level_and_counted_apart():
    races = people()["race"].to_pylist()
    races[5] = races[300] = None
    stream = hiring(replaced(people(), "race", races), rows=200, sensitive="race")
    assert stream.schema.attributes[0].levels == ("a", "b", "c")
    first, second = stream.tasks(0)
    assert first.group[5, 0] == second.group[100, 0] == 3
    assert first.warnings == second.warnings == ("race: 1 rows without a value, counted apart",)
    assert any("1 of 200 rows of the first task have no value" in note for note in stream.notes)


def test_a_threshold_and_ranges_make_groups_of_numbers():
    ages = np.asarray(people()["age"], dtype=float)
    ages[7] = np.nan
    table = replaced(people(), "age", ages)
    for spec, levels, cuts, side in (
        ("age>40", ("<=40", ">40"), [40], "left"),
        ("age<40", ("<40", ">=40"), [40], "right"),
        (
            "age:25,40,60",
            ("below 25", "25 to 40", "40 to 60", "60 and above"),
            [25, 40, 60],
            "right",
        ),
    ):
        stream = hiring(table, sensitive=spec, tasks=1)
        assert stream.schema.attributes == ((spec, levels),)
        assert "age" not in stream.schema.features
        codes = next(stream.tasks(0)).group[:, 0]
        known = np.arange(400) != 7
        np.testing.assert_array_equal(codes[known], np.searchsorted(cuts, ages[known], side))
        assert codes[7] == len(levels)
        again = hiring(
            table, sensitive=spec, tasks=1, encoder=json.loads(json.dumps(stream.encoder))
        )
        np.testing.assert_array_equal(next(again.tasks(0)).group[:, 0], codes)


def test_an_intersection_has_a_group_for_every_pair_that_the_first_task_shows():
    table = people()
    races = table["race"].to_pylist()
    races[3], races[390] = None, "new"
    table = replaced(table, "race", races)
    stream = hiring(table, sensitive=["sex*race", "sex*age>40"], rows=380)
    crossed, ranges = stream.schema.attributes
    assert crossed == ("sex*race", tuple(f"{s} & {r}" for s in "fm" for r in "abc"))
    assert ranges == ("sex*age>40", ("f & <=40", "f & >40", "m & <=40", "m & >40"))
    first, second = stream.tasks(0)
    sexes = table["sex"].to_pylist()
    for row in (0, 1, 2, 50):
        assert crossed.levels[first.group[row, 0]] == f"{sexes[row]} & {races[row]}"
    assert first.group[3, 0] == second.group[10, 0] == 6
    assert "age" not in stream.schema.features
    again = hiring(table, sensitive=["sex*race", "sex*age>40"], rows=380, encoder=stream.encoder)
    same(again, stream)


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("age>forty", ConfigError, "expected rising numbers in the sensitive range 'age>forty'"),
        ("age:50,30", ConfigError, "expected rising numbers in the sensitive range 'age:50,30'"),
        ("age>99", DataError, "expected two or more groups in the sensitive column 'age>99'"),
        (
            "agee>40",
            DataError,
            "expected a column 'agee' in the table, got none; did you mean 'age'",
        ),
        ("sex*", DataError, "expected a column ''"),
        ("sex*age", DataError, "expected at most 12 groups in the sensitive column 'age'"),
    ],
)
def test_a_group_that_cannot_be_made_is_refused(spec, error, words):
    with pytest.raises(error, match=words):
        hiring(people(), sensitive=spec)


def test_values_that_differ_in_case_only_are_one_with_a_note():
    table = people()
    for column in ("sex", "job", "hired"):
        values = table[column].to_pylist()
        values[::9] = [value.upper() for value in values[::9]]
        table = replaced(table, column, values)
    stream = hiring(table, rows=200)
    clean = hiring(people(), rows=200)
    assert stream.schema == clean.schema
    same(stream, clean)
    assert sum("differ in case only are one" in note for note in stream.notes) == 2


def test_several_sensitive_columns_make_several_columns_of_groups():
    stream = hiring(people(), sensitive=["sex", "race", "race=a"])
    assert [attribute.name for attribute in stream.schema.attributes] == ["sex", "race", "race=a"]
    assert next(stream.tasks(0)).group.shape[1] == 3


def test_groups_of_a_few_rows_are_pointed_out():
    races = ["a", "b"] * 200
    races[7] = "rare"
    notes = hiring(replaced(people(), "race", races), sensitive="race", rows=100).notes
    assert "race: fewer than 10 rows of the first task in rare" in notes
    assert not any("fewer than" in note for note in hiring(people(), rows=100).notes)


# What is saved


def test_settings_and_encoder_are_json_and_build_the_stream_again(tmp_path):
    path = write(tmp_path, people())
    stream = hiring(path, time="when", every="1W", domain="region", positive="yes", drop=["pay"])
    settings = json.loads(json.dumps(stream.settings, allow_nan=False))
    again = stream_from_table(settings.pop("source"), **settings)
    same(again, stream)
    assert json.loads(json.dumps(stream.encoder, allow_nan=False)) == again.encoder


def test_a_saved_encoder_is_no_setting_that_a_person_types():
    names = setting_names("people.csv")
    assert "label" in names
    assert "encoder" not in names


def test_new_rows_without_a_label_are_encoded_as_the_stream_encodes_them(tmp_path):
    stream = hiring(people(), rows=100)
    saved = Encoder.from_json(json.loads(json.dumps(stream.encoder)))
    x, notes = saved.encode(people().drop_columns(["hired", "sex"]).slice(0, 100))
    np.testing.assert_array_equal(x, next(stream.tasks(0)).x)
    assert notes == ()
    np.testing.assert_allclose(saved.transform(write(tmp_path, people()))[:100], x, atol=1e-6)
    odd = replaced(people(), "job", ["pilot"] * 400)
    [note] = saved.encode(odd).remarks
    assert str(note) == "column 'job': 400 rows are of no known category, such as 'pilot'"
    with pytest.raises(DataError, match="expected a column 'pay'"):
        saved.encode(people().drop_columns(["pay"]))


def test_what_is_odd_about_a_column_is_said_of_every_task():
    jobs = people()["job"].to_pylist()
    jobs[150:] = ["pilot"] * 250
    stream = hiring(replaced(people(), "job", jobs), rows=100)
    for _ in range(2):
        told = [any("'job'" in w for w in task.warnings) for task in stream.tasks(0)]
        assert told == [False, True, True, True]


# Bad input


def text(tmp_path, content, name="bad.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.csv", b"PAR1....", "got a Parquet file; rename it to end in .parquet"),
        ("bad.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "got a gzip file; rename"),
        ("bad.csv", b"PK\x03\x04....", "got a zip file or spreadsheet"),
        ("bad.csv", b"<!DOCTYPE html><p>", "got an HTML page; download the data itself"),
        ("bad.csv", b"a,b\n\x00\x01,2\n", "got binary data"),
        ("bad.csv.gz", b"a,b\n1,2\n", "expected a whole gzip file"),
        (
            "bad.csv.gz",
            gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 999, mtime=0)[:-20],
            "whole gzip",
        ),
        ("bad.parquet", b"a,b\n1,2\n", "expected a whole Parquet file"),
        ("bad.parquet", b"PAR1" + bytes(50) + b"PAR1", "expected a whole Parquet file"),
        ("bad.csv", b"", "got an empty file"),
        ("bad.csv", b"\n \n", "got blank lines"),
        ("bad.parquet", b"", "got an empty file"),
        ("bad.xlsx", b"PK", "expected a file ending in .csv"),
        ("bad.csv", b"hired,sex\n", "expected at least two rows, got none"),
        ("bad.csv", b"hired,sex,age\nyes,m,3\n", "expected at least two rows, got 1"),
        ("bad.csv", b"hired,sex,age,age\nyes,m,3,3\nno,f,4,4\n", "got 'age' 2 times"),
        ("bad.csv", b"hired,sex,age\nyes,m,3\nno,f\n", "expected rows of 3 values in .*got 2"),
        ("bad.csv", b"39,m,yes\n40,f,no\n", "does the file have a header"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused_in_plain_words(
    tmp_path, name, content, message
):
    with pytest.raises(DataError, match=message):
        hiring(text(tmp_path, content, name))


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file; check the path"):
        hiring(tmp_path / "none.csv")
    with pytest.raises(DataError, match="got a folder"):
        hiring(tmp_path)
    with pytest.raises(DataError, match="expected a path, a dataframe"):
        hiring(42)


def test_a_file_that_is_not_utf8_is_read_as_latin_1_with_a_note(tmp_path):
    table = replaced(people(), "job", ["café", "nurse"] * 200)
    path = write(tmp_path, table, encoding="latin-1")
    stream = hiring(path)
    assert "job=nurse" in stream.schema.features
    assert any("not UTF-8, the first is 0xe9" in note for note in stream.notes)
    assert read_table(path)["job"][0].as_py() == "café"
    for encoding in ("utf-8-sig", "utf-16"):
        marked = write(tmp_path, table, "marked.csv", encoding=encoding)
        same(hiring(marked), hiring(table))


def test_a_census_file_with_blanks_after_commas_and_question_marks(tmp_path):
    rng = np.random.default_rng(3)
    lines = ["age, workclass, fnlwgt, education, capital-gain, sex, income"]
    for _ in range(600):
        work = rng.choice(["Private", "State-gov", "?"])
        school = rng.choice(["HS-grad", "Masters"])
        gain = 0 if rng.random() < 0.92 else int(rng.lognormal(8, 1))
        sex, income = rng.choice(["Male", "Female"]), rng.choice(["<=50K", ">50K"])
        row = (rng.integers(17, 90), work, rng.integers(10**4, 10**6), school, gain, sex, income)
        lines.append(", ".join(str(value) for value in row))
    path = text(tmp_path, "\n".join(lines), "adult.csv")
    stream = stream_from_table(path, label="income", sensitive="sex")
    assert stream.schema.features == (
        *("age", "workclass=Private", "workclass=State-gov", "workclass=missing"),
        *("workclass=other", "fnlwgt", "education=Masters", "capital-gain"),
    )
    assert stream.schema.attributes[0].levels == ("Female", "Male")
    assert stream.length == 12
    x = np.concatenate([task.x for task in stream.tasks(0)])
    assert np.abs(x).max() <= 5


def test_line_breaks_and_delimiters_inside_quotes_are_part_of_a_value(tmp_path):
    table = replaced(people(), "job", ['a,"b"\nc', "d"] * 200)
    assert read_table(write(tmp_path, table))["job"][0].as_py() == 'a,"b"\nc'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label": "hird"},
            "expected a column 'hird' in the table, got none; did you mean 'hired'",
        ),
        ({"sensitive": "gender"}, "expected a column 'gender'"),
        ({"sensitive": "sex=x"}, "expected 'x' among the values of the sensitive column 'sex'"),
        ({"time": "whem"}, "did you mean 'when'"),
        ({"domain": "regions"}, "did you mean 'region'"),
        ({"drop": ["agee"]}, "did you mean 'age'"),
        ({"columns": ["payy"]}, "did you mean 'pay'"),
        ({"label": "race"}, "expected two values in the label 'race', got 3: 'a', "),
        ({"positive": "maybe"}, "expected a value of the label 'hired' as positive, got"),
        ({"sensitive": "pay"}, "expected at most 12 groups"),
        ({"time": "job"}, "expected dates or numbers in the time column 'job', got"),
        ({"tasks": 401}, "got 400 rows for 401 tasks"),
        ({"columns": ["age"], "drop": ["age"]}, "expected inputs besides label and groups"),
    ],
)
def test_columns_that_do_not_fit_their_role_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        hiring(people(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitive": "hired"}, "the label must be a column of its own"),
        ({"time": "hired"}, "the label must be a column of its own"),
        ({"sensitive": []}, "sensitive must name columns"),
        ({"sensitive": ["sex", "sex"]}, "each once"),
        ({"tasks": 5, "rows": 5}, "cut in one way, got tasks and rows"),
        ({"tasks": 5, "every": "1D", "time": "when"}, "cut in one way, got tasks and every"),
        ({"every": "1D"}, "needs a time column"),
        ({"every": "1x", "time": "when"}, "use for example 10D or 1M"),
        ({"every": "0D", "time": "when"}, "use for example 10D or 1M"),
        ({"every": "3m", "time": "when"}, "M .months., Q, Y, got '3m'"),
        ({"rows": 0}, "rows must be at least 1 and at most 1000000000, got 0"),
        ({"tasks": -1}, "tasks must be at least 1 and at most 1000000000, got -1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        hiring(people(), **options)


def test_a_number_of_tasks_needs_a_number_of_rows():
    with pytest.raises(ConfigError, match="use rows or every"):
        hiring(iter([people()]), tasks=4)


def test_a_sensitive_column_of_one_value_or_mostly_missing_is_refused():
    with pytest.raises(DataError, match=r"expected two or more groups .*got one \('f'\)"):
        hiring(replaced(people(), "sex", ["f"] * 400))
    with pytest.raises(DataError, match="expected two or more groups"):
        hiring(replaced(people(), "sex", ["f"] * 400), sensitive="sex=f")
    with pytest.raises(DataError, match="got 12 of 20 rows of the first task without a value"):
        hiring(replaced(people(), "sex", ["f", "?", "?", "m", "?"] * 80), rows=20)


def test_a_third_label_is_refused_before_the_run_where_the_table_can_be_looked_through():
    labels = people()["hired"].to_pylist()
    labels[399] = "perhaps"
    table = replaced(people(), "hired", labels)
    message = "expected the label 'hired' to be 'no' or 'yes', got also 'perhaps'"
    with pytest.raises(DataError, match=message):
        hiring(table, rows=100)
    tasks = hiring(iter([table]), rows=100).tasks(0)
    for _ in range(3):
        next(tasks)
    with pytest.raises(DataError, match=message):
        next(tasks)


def test_a_time_of_small_whole_numbers_that_come_again_is_doubted():
    said = "the time 'age' holds small whole numbers, such as 18"
    assert any(note.startswith(said) for note in hiring(people(), time="age", rows=100).notes)
    for table in (people(), replaced(people(), "age", np.arange(400) + 1900)):
        column = "when" if table.equals(people()) else "age"
        notes = hiring(table, time=column, rows=100).notes
        assert not any("small whole numbers" in note for note in notes)


def test_times_that_cannot_be_read_are_named_with_their_row():
    days = [f"2020-01-{1 + row // 20:02d}" for row in range(400)]
    days[300] = "soon"
    with pytest.raises(DataError, match=r"year-month-day .*got 'soon' \(first at row 301\)"):
        hiring(replaced(people(), "when", days), time="when")
    days[300] = None
    with pytest.raises(DataError, match=r"got nothing \(first at row 301\)"):
        hiring(replaced(people(), "when", days), time="when")


def test_month_first_or_day_first_is_settled_by_the_first_task_or_said_to_be_a_guess():
    def days(pattern, count):
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) * count // 400, unit="D")
        return replaced(people(), "when", [f"{day:{pattern}}" for day in days])

    guess = hiring(days("%m/%d/%Y", 9), time="when", rows=100)
    assert any("the month is taken" in note for note in guess.notes)
    settled = hiring(days("%d/%m/%Y", 31), time="when", rows=200)  # sixteen days
    assert not any("the month is taken" in note for note in settled.notes)
    # The first task leaves it open; a later date must not change how the first ones are read.
    with pytest.raises(DataError, match=r"got '13/01/2020' .*say --time-format day/month/year"):
        hiring(days("%d/%m/%Y", 31), time="when", rows=100)
    for format in ("day/month/year", "%d/%m/%Y"):
        told = hiring(days("%d/%m/%Y", 31), time="when", every="1D", time_format=format)
        assert told.length == 31
        assert not any("the month is taken" in note for note in told.notes)
    with pytest.raises(ConfigError, match="did you mean 'day/month/year'"):
        hiring(people(), time="when", time_format="day/month/yera")


@pytest.mark.parametrize("first", ["2020-02-06 12:00", "2020-01-01", "2020-01-13"])
def test_day_first_is_told_where_the_calendar_cuts_as_well(first: str):
    """Read month first, the first week is another one, or there is no row that can be read."""
    days = pd.Timestamp(first) + pd.to_timedelta(np.arange(400) // 4, unit="D")
    texts = [f"{day:%d.%m.%Y %H:%M}" for day in days]
    shuffled = [texts[0], *np.random.default_rng(0).permutation(texts[1:])]
    for column in (texts, shuffled):
        stream = hiring(replaced(people(), "when", column), time="when", every="1W")
        assert stream.length in (15, 16)  # a hundred days
        assert not any("the month is taken" in note for note in stream.notes)


def test_a_pattern_without_the_time_of_day_is_refused_with_the_one_to_type():
    table = replaced(people(), "when", ["31.01.2020 12:00"] * 400)
    message = r"got '31.01.2020 12:00' \(first at row 1\).*say --time-format '%d.%m.%Y %H:%M'"
    with pytest.raises(DataError, match=message):
        hiring(table, time="when", time_format="%d.%m.%Y")
    hiring(table, time="when", time_format="%d.%m.%Y %H:%M")


def test_a_column_that_changes_its_type_on_the_way_is_read_as_far_as_it_goes():
    numbers, words = people(200), replaced(people(200, seed=1), "age", ["old"] * 200)
    stream = hiring([numbers, words], rows=150)
    tasks = list(stream.tasks(0))
    place = stream.schema.features.index("age")
    assert "column 'age': 100 rows hold no number, such as 'old'" in tasks[1].warnings
    assert (tasks[1].x[50:, place] == 0).all()
    assert (tasks[1].x[:50, place] != 0).any()


def test_a_dataframe_column_of_mixed_python_types_is_read_as_text():
    frame = people().to_pandas()
    frame["odd"] = pd.Series([1, "two", None, 3.5] * 100, dtype=object)
    assert any(name.startswith("odd=two") for name in hiring(frame).schema.features)


def test_batches_that_lose_a_column_are_named():
    stream = hiring(lambda: iter([people(), people().drop_columns(["pay"])]), rows=400)
    with pytest.raises(DataError, match="expected a column 'pay' in batch 2"):
        list(stream.tasks(0))
    with pytest.raises(DataError, match="got an iterator without any"):
        hiring(iter([]))
    with pytest.raises(DataError, match="expected a dataframe, got int"):
        hiring(iter([3]))
    with pytest.raises(DataError, match="got NoneType from it"):
        hiring(lambda: None)


def test_a_dataframe_with_a_column_name_twice_is_refused():
    frame = people().to_pandas()
    frame.columns = [name.replace("pay", "age") for name in frame.columns]
    with pytest.raises(DataError, match="expected every column name once"):
        hiring(frame)


def test_a_tiny_first_task_is_fitted_nonetheless_and_noted():
    stream = hiring(people(), rows=10)
    assert any("only 10 rows" in note for note in stream.notes)
    assert all(np.isfinite(task.x).all() for task in stream.tasks(0))


# The real file


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="the real data sets are not beside the project")
def test_all_stops_of_2011_stream_from_a_compressed_file():
    path = REAL / "nypd-sqf-2011-arrests.csv.gz"
    before = pa.total_allocated_bytes()
    stream = stream_from_table(
        path, label="arstmade", sensitive="race=B", time="date", every="10D", domain="borough",
        drop=["unix_time"],
    )  # fmt: skip
    rows, positives, most = 0, 0.0, 0
    for task in stream.tasks(0):
        rows, positives = rows + len(task.y), positives + float(task.y.sum())
        most = max(most, pa.total_allocated_bytes() - before)
    assert (stream.length, rows) == (37, 685_724)
    assert 0.05 < positives / rows < 0.07
    assert most < 5 * 43_429_043  # five times the decoded file
