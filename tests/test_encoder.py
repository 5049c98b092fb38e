"""What an encoder promises: fitted once, fixed in width, finite whatever comes, saved as JSON."""

import datetime
import functools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.columns import factor, numbers
from fairsaoml.streams.table.encoder import CLIP, Categorical, Date, Encoder, Numeric
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.row_encoder import RowEncoder

RNG = np.random.default_rng(4)


def reasons(encoder):
    return {column.name: column.reason for column in encoder.dropped}


def only(encoder):
    """The single column of an encoder."""
    (column,) = encoder.columns
    return column


def mixed_table(rows=200):
    """Every kind of column that stays."""
    rng = np.random.default_rng(1)
    day = np.datetime64("2020-01-01") + rng.integers(0, 700, rows)
    return pa.table(
        {
            "age": rng.integers(18, 90, rows),
            "score": rng.normal(size=rows),
            "income": rng.lognormal(8, 2, rows),
            "member": rng.choice(["yes", "no"], rows),
            "job": rng.choice(["cook", "nurse", "smith", None], rows),
            "grade": rng.integers(1, 5, rows),
            "since": day,
            "bonus": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(5, 2, rows)),
        }
    )


fit_once = functools.cache(lambda: fit_encoder(mixed_table()))


# Numbers as people write them

AMOUNTS = RNG.normal(50_000, 20_000, 60).round(2)
GERMAN = str.maketrans(",.", ".,")


@pytest.mark.parametrize(
    "write",
    [
        lambda v: f"{v:.2f}".translate(GERMAN),
        lambda v: f"{v:,.2f}".translate(GERMAN),
        lambda v: f"{v:,.2f} €".translate(GERMAN),
        lambda v: f"{v:,.2f}".translate(GERMAN).replace(".", "\u00a0"),
        lambda v: f"{v:,.2f}".translate(GERMAN).replace(".", "\u202f"),
        lambda v: f"{v:,.2f}".replace(",", "'"),
        lambda v: f"{v:,.2f}".replace(",", "\u2019"),
        lambda v: f"USD {v:,.2f}",
        lambda v: f"{v:,.2f} EUR",
        lambda v: f"{v:,.2f}" if v >= 0 else f"({-v:,.2f})",
        lambda v: f"{v:,.2f}" if v >= 0 else f"{-v:,.2f}-",
        lambda v: f"{v / 1000:.5f}k",
        lambda v: f"$ {v:,.2f}",
    ],
    ids=lambda write: write(-1234567.5) + " " + write(1234.5),
)
def test_amounts_are_numbers_however_they_are_written(write):
    values = np.array([*AMOUNTS, -1234567.5, 0.8, -0.25])
    table = pa.table({"v": [write(value) for value in values]})
    encoder = Encoder.from_json(json.loads(json.dumps(fit_encoder(table).to_json())))
    assert encoder.features == ("v",)
    plain = fit_encoder(pa.table({"v": values})).transform(pa.table({"v": values}))
    np.testing.assert_allclose(encoder.transform(table), plain, atol=1e-5)
    np.testing.assert_array_equal(
        RowEncoder(encoder).encode(table.to_pylist()), encoder.transform(table)
    )


def test_whether_a_comma_stands_before_decimals_is_what_fits_most_values_and_is_kept():
    comma = fit_encoder(pa.table({"v": ["1.234", "0,85", "17,5"] * 10}))
    assert only(comma).decimal == ","
    np.testing.assert_array_equal(
        comma.transform(pa.table({"v": ["1.000", "1,5"]})),  # of which one alone would say less
        comma.transform(pa.table({"v": [1000.0, 1.5]})),
    )
    either = fit_encoder(pa.table({"v": ["1,234", "5,678"] * 10 + ["9"]}))
    assert only(either).decimal == "."
    assert numbers(pa.array(["1,234"])).values[0] == 1234
    saved = comma.to_json()
    del saved["columns"][0]["decimal"]  # as earlier versions wrote it
    assert only(Encoder.from_json(saved)).decimal == "."
    with pytest.raises(DataError, match="a decimal point or comma"):
        Encoder.from_json({**saved, "columns": [{**saved["columns"][0], "decimal": ";"}]})


def test_a_column_left_out_as_an_id_that_begins_with_digits_says_that_it_may_be_a_number():
    odd = fit_encoder(pa.table({"v": [f"{n}|{n % 7}" for n in range(60)], "a": range(1, 61)}))
    assert "if these are numbers, how they are written was not understood" in reasons(odd)["v"]
    for joined in ("17-{n:06}", "{n}:{n}:1", "{n}/17"):
        case = fit_encoder(pa.table({"v": [joined.format(n=n) for n in range(60)]}))
        assert reasons(case)["v"] == "an id or a name, different in nearly every row"


# Against independent implementations


def test_numbers_are_standardised_as_scikit_learn_does_it():
    values = RNG.normal(40, 9, 300)
    x = fit_encoder(pa.table({"v": values})).transform(pa.table({"v": values}))
    np.testing.assert_allclose(x, StandardScaler().fit_transform(values[:, None]), rtol=1e-5)


def test_categories_are_one_hot_as_scikit_learn_does_it_with_a_column_for_the_unknown():
    first = RNG.choice(["a", "b", "c"], 100)
    later = np.array(["b", "zebra", "a"])
    encoder = fit_encoder(pa.table({"v": first}))
    oracle = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(first[:, None])
    x = encoder.transform(pa.table({"v": later}))
    np.testing.assert_array_equal(x[:, :-1], oracle.transform(later[:, None]))
    np.testing.assert_array_equal(x[:, -1], [0, 1, 0])


def test_date_parts_are_those_of_the_calendar():
    days = [datetime.datetime(2019, 3, 4, 6) + datetime.timedelta(days=37 * i) for i in range(40)]
    x = fit_encoder(pa.table({"d": days})).transform(pa.table({"d": days}))
    names = [f"d:{part}" for part in ("trend", "year_sin", "year_cos", "week_sin", "week_cos")]
    assert fit_encoder(pa.table({"d": days})).features == (*names, "d:day_sin", "d:day_cos")
    weekday = np.array([day.weekday() for day in days])
    of_year = np.array([day.timetuple().tm_yday - 1 for day in days])
    np.testing.assert_allclose(x[:, 1], np.sin(2 * np.pi * of_year / 365.2425), atol=1e-5)
    np.testing.assert_allclose(x[:, 4], np.cos(2 * np.pi * weekday / 7), atol=1e-5)
    np.testing.assert_allclose(x[:, 5:], [[1.0, 0.0]] * 40, atol=1e-5)  # six in the morning
    assert np.all(np.diff(x[:, 0]) > 0)


# Column kinds


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.1 * i for i in range(50)], "numeric"),
        ([str(0.1 * i) for i in range(50)], "numeric"),
        ([f"${i},000.50" for i in range(1, 51)], "numeric"),
        ([i % 2 for i in range(50)], "categorical"),
        ([i % 5 for i in range(50)], "categorical"),
        ([(i % 5) * 1000 for i in range(50)], "numeric"),  # amounts, not codes
        ([i % 30 for i in range(300)], "numeric"),
        ([i % 5 for i in range(10)], "numeric"),  # too few rows to be sure
        ([i % 3 == 0 for i in range(50)], "categorical"),
        ([f"0{1000 + i % 4}" for i in range(50)], "categorical"),  # zip codes
        ([None, "Y"] * 20, "categorical"),
        ([f"2011-01-{1 + i % 28:02d}" for i in range(50)], "date"),
        ([20110101 + i % 28 for i in range(50)], "date"),
        ([f"{i % 24}:30" for i in range(50)], "date"),
        ([datetime.date(2020, 1, 1 + i % 28) for i in range(50)], "date"),
    ],
)
def test_a_column_is_what_it_looks_like(values, kind):
    assert only(fit_encoder(pa.table({"v": values}))).kind == kind


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("v", ["x"] * 30, "constant"),
        ("v", [7] * 30, "constant"),
        ("v", [None] * 30, "empty"),
        ("v", ["?"] * 30, "empty"),
        ("v", list(range(1, 31)), "running number"),
        ("v", [f"{1000 + i}" for i in range(30)], "running number"),
        ("v", [f"AB-{i * 7919 % 1000:04d}" for i in range(30)], "an id or a name"),
        ("user_id", [i * 7919 % 40 for i in range(300)], "an id or a name"),
        ("customerId", [f"c{i * 7919 % 40}" for i in range(300)], "an id or a name"),
        ("v", [f"the suspect was seen near door number {i}" for i in range(30)], "free text"),
        ("v", [[i] for i in range(30)], "not one value per row"),
        ("v", [bytes([i]) for i in range(30)], "not one value per row"),
    ],
)
def test_what_says_nothing_of_the_next_row_is_left_out_and_named(name, values, reason):
    encoder = fit_encoder(pa.table({name: values}))
    assert encoder.columns == ()
    assert reason in reasons(encoder)[name]
    assert len(encoder.notes()) == 1
    assert name in encoder.notes()[0]


def test_a_wrong_guess_is_mended_by_naming_the_kind():
    table = pa.table({"v": list(range(1, 31)), "w": [1, 2, 3] * 10})
    encoder = fit_encoder(table, kinds={"v": "numeric", "w": "drop"})
    assert only(encoder).kind == "numeric"
    assert reasons(encoder) == {"w": "as asked"}
    assert [c.kind for c in fit_encoder(table, keep=["v"]).columns] == ["numeric", "categorical"]
    with pytest.raises(ConfigError, match="did you mean 'numeric'"):
        fit_encoder(table, kinds={"v": "numerical"})
    with pytest.raises(DataError, match="expected a column 'z'"):
        fit_encoder(table, kinds={"z": "numeric"})


def test_only_the_most_frequent_categories_have_a_column():
    values = [f"c{i:02d}" for i in range(40) for _ in range(3 + i)]
    column = only(fit_encoder(pa.table({"v": values})))
    assert column.levels == tuple(f"c{i:02d}" for i in range(10, 40))
    x = column.encode(pa.array(["c05", "c39"])).x
    np.testing.assert_array_equal(x.argmax(axis=1), [30, 29])
    assert column.encode(pa.array(["c05"])).remarks == ()  # it was there, only rare


def test_a_level_that_is_called_other_keeps_its_own_column():
    column = only(fit_encoder(pa.table({"v": ["a", "b", "other"] * 10})))
    assert column.features == ("v=a", "v=b", "v=other", "v=any other")
    np.testing.assert_array_equal(column.encode(pa.array(["other", "z"])).x.argmax(axis=1), [2, 3])


def test_a_categorical_type_does_not_tell_of_values_it_has_not_shown():
    frame = pd.DataFrame({"v": pd.Categorical(["a", "b"] * 20, categories=["a", "b", "later"])})
    assert only(fit_encoder(frame)).levels == ("a", "b")


# Robustness


def test_a_heavy_tail_is_read_in_logarithms_and_keeps_its_shape():
    values = RNG.lognormal(6, 2, 1000)
    column = only(fit_encoder(pa.table({"v": values})))
    assert column.unit is not None
    x = column.encode(pa.array(values)).x[:, 0]
    assert np.abs(x).max() <= CLIP
    # Standardised as they are, nine rows in ten would share a hundredth of a deviation.
    assert np.subtract(*np.percentile(x, [75, 25])) > 0.5
    order = np.argsort(values)
    assert np.all(np.diff(x[order]) >= 0)


def test_values_are_cut_at_five_deviations_and_many_such_are_remarked_upon():
    column = Numeric(name="v", center=0.0, scale=1.0)
    x, remarks = column.encode(pa.array([0.5, 1e30, -7.0]))
    np.testing.assert_array_equal(x[:, 0], np.float32([0.5, CLIP, -CLIP]))
    assert [str(r) for r in remarks] == ["column 'v': 2 rows are cut at 5 standard deviations"]


def test_gaps_of_the_first_task_get_a_flag_and_the_mean():
    column = only(fit_encoder(pa.table({"v": [1.5, None, 2.5, float("nan")]})))
    assert column.features == ("v", "v=missing")
    x, remarks = column.encode(pa.array([2.0, None]))
    np.testing.assert_array_equal(x, [[0, 0], [0, 1]])
    assert remarks == ()


def test_gaps_that_come_only_later_take_the_mean_and_are_remarked_upon():
    table = pa.table({"n": [1.5, 2.5], "c": ["a", "b"], "m": ["p", "q"], "d": ["2011-01-01"] * 2})
    encoder = fit_encoder(
        pa.concat_tables(
            [table, table, pa.table({"n": [2.0], "c": ["b"], "m": ["r"], "d": ["2011-02-01"]})]
        )
    )
    nothing = pa.table({name: pa.nulls(1, pa.string()) for name in table.column_names})
    x, remarks = encoder.encode(nothing)
    values = dict(zip(encoder.features, x[0].tolist(), strict=True))
    assert values["n"] == 0
    assert values["c=b"] == pytest.approx(0.6)  # the first task's share of "b"
    assert (values["m=p"], values["m=q"], values["m=r"], values["m=other"]) == (0, 0, 0, 1)
    assert values["d:trend"] == values["d:week_cos"] == 0
    assert [remark.column for remark in remarks] == ["n", "c", "m", "d"]
    assert all("no value" in str(remark) for remark in remarks)


def test_text_among_numbers_counts_as_no_value_and_is_named():
    column = only(fit_encoder(pa.table({"v": [str(i / 10) for i in range(30)] + ["unknown"]})))
    assert column.kind == "numeric"
    assert column.flag
    x, remarks = column.encode(pa.array(["1.5", "n/a", "twelve"]))
    np.testing.assert_array_equal(x[:, 1], [0, 1, 1])
    assert [str(r) for r in remarks] == ["column 'v': 1 rows hold no number, such as 'twelve'"]


def test_infinite_numbers_count_as_no_value():
    x, remarks = Numeric(name="v", center=0.0, scale=1.0).encode(pa.array([np.inf, -np.inf, 1.0]))
    np.testing.assert_array_equal(x[:, 0], [0, 0, 1])
    assert remarks[0].rows == 2


def test_the_same_value_reads_the_same_as_text_and_as_a_number():
    encoder = fit_encoder(pa.table({"code": ["1", "2", "3"] * 10, "v": ["1.5", "2", "4"] * 10}))
    text = encoder.transform(pa.table({"code": [" 2 ", "3.0"], "v": ["2.0", "+4"]}))
    typed = encoder.transform(pa.table({"code": [2, 3], "v": [2.0, 4.0]}))
    holes = encoder.transform(pd.DataFrame({"code": [2.0, 3.0], "v": [2, 4]}))
    np.testing.assert_array_equal(text, typed)
    np.testing.assert_array_equal(text, holes)


def test_an_encoder_fitted_on_dates_reads_dates_written_as_text_and_the_other_way_round():
    days = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=31 * i) for i in range(30)]
    typed, text = pa.table({"d": days}), pa.table({"d": [f"{day:%m/%d/%Y %H:%M}" for day in days]})
    for first in (typed, text):
        encoder = fit_encoder(first)
        np.testing.assert_allclose(encoder.transform(typed), encoder.transform(text), atol=1e-5)


JUNK = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["?", "NaN", "2011-02-30", "1e999", "-", "inf", "12:99", "é", "\x00"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(JUNK, min_size=8, max_size=8), max_size=5))
def test_whatever_comes_later_the_width_is_the_same_and_every_value_is_finite(rows):
    encoder = fit_once()
    names = mixed_table(1).column_names
    junk = pa.table(
        {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)}
    )
    x = encoder.transform(junk)
    assert x.shape == (len(rows), len(encoder.features))
    assert x.dtype == np.float32
    assert np.isfinite(x).all()
    assert np.abs(x).max(initial=0) <= CLIP
    np.testing.assert_array_equal(RowEncoder(encoder).encode(junk.to_pylist()), x)


def test_rows_are_encoded_without_a_table_to_the_last_bit_alone_and_together(monkeypatch):
    table, encoder = mixed_table(), fit_once()
    table = table.set_column(6, "since", table["since"].cast(pa.string()))
    rows = json.loads(json.dumps(table.to_pylist()))
    rows[3] |= {"job": 7, "grade": "3", "income": " $1,200"}
    rows[4] |= {"job": True, "age": None, "since": None}
    plain = pa.table({name: [_text(row[name]) for row in rows] for name in table.column_names})
    quick = RowEncoder(encoder)
    monkeypatch.setattr("fairsaoml.streams.table.row_encoder.MOST_REMEMBERED", 300)  # is reached
    np.testing.assert_array_equal(quick.encode(rows), encoder.transform(plain))
    for place in (0, 3, 4):
        alone = quick.encode(rows[place : place + 1])
        np.testing.assert_array_equal(alone, encoder.transform(plain.slice(place, 1)))
    assert quick.encode([]).shape == (0, len(encoder.features))


def test_threads_that_meet_new_words_at_once_do_not_disturb_each_other(monkeypatch):
    one, other = ({**row, "since": None} for row in mixed_table(2).to_pylist())
    one["job"], other["job"] = "nurse", "cook"
    expected = [RowEncoder(fit_once()).encode([row]) for row in (one, other)]
    quick, plain, between = RowEncoder(fit_once()), Categorical.encode, []

    def interrupted(column, values):
        if column.name == "job" and not between:
            between.append(None)  # another thread's turn, in the middle of this one's
            between[0] = quick.encode([other])
        return plain(column, values)

    monkeypatch.setattr(Categorical, "encode", interrupted)
    np.testing.assert_array_equal(quick.encode([one]), expected[0])
    np.testing.assert_array_equal(between[0], expected[1])
    np.testing.assert_array_equal(quick.encode([one, other]), np.concatenate(expected))


def _text(value):
    return value if value is None else str(value)


def test_each_row_is_encoded_by_itself():
    table = mixed_table()
    encoder = fit_encoder(table)
    whole = encoder.transform(table)
    order = RNG.permutation(table.num_rows)
    np.testing.assert_array_equal(encoder.transform(table.take(order)), whole[order])
    np.testing.assert_array_equal(encoder.transform(table.slice(17, 1)), whole[17:18])


# Saving


def test_an_encoder_survives_json():
    table = mixed_table()
    encoder = fit_encoder(table)
    assert {type(column) for column in encoder.columns} == {Numeric, Categorical, Date}
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json(), allow_nan=False)))
    assert again == encoder
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


@pytest.mark.parametrize("spoil", ["version", "columns", "label"])
def test_a_saved_encoder_that_is_not_whole_is_refused(spoil):
    saved = fit_encoder(mixed_table()).to_json()
    del saved[spoil]
    with pytest.raises(DataError, match="make the run again"):
        Encoder.from_json(saved)


def test_a_column_that_is_missing_from_new_rows_is_named_and_extra_ones_are_ignored():
    encoder = fit_encoder(mixed_table())
    with pytest.raises(DataError, match=r"expected a column 'age'.*did you mean 'Age'"):
        encoder.transform(mixed_table().rename_columns({"age": "Age"}))
    wider = mixed_table().append_column("more", pa.array(range(200)))
    np.testing.assert_array_equal(encoder.transform(wider), encoder.transform(mixed_table()))


# Dates and numbers written as text


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("2011-01-31", "year-month-day"),
        ("2011/1/31 14:30", "year-month-day"),
        ("2011-01-31T14:30:05.25", "year-month-day"),
        ("20110131", "yearmonthday"),
        ("1/31/2011", "month/day/year"),
        ("01/31/11 02:30:00 PM", "month/day/year"),
        ("31.01.2011", "day/month/year"),
        ("31-Jan-2011", "day-name-year"),
        ("January 31, 2011", "name-day-year"),
    ],
)
def test_the_ways_people_write_dates(text, format):
    assert dates.formats(pa.array([text])) == (format,)
    (seconds,) = dates.of_text(pa.array([text]), format)
    assert datetime.datetime.fromtimestamp(seconds, datetime.UTC).date() == datetime.date(
        2011, 1, 31
    )
    assert seconds % 86400 in (0, 52200, 52205.25)


@pytest.mark.parametrize("text", ["2011-02-29", "2011-13-01", "2011-00-10", "31/31/2011", "25:70"])
def test_days_that_do_not_exist_are_no_dates(text):
    assert dates.formats(pa.array([text])) == ()


@given(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2099, 12, 31)))
def test_iso_dates_read_as_the_standard_library_reads_them(moment):
    (seconds,) = dates.of_text(pa.array([moment.isoformat()]), "year-month-day")
    expected = moment.replace(tzinfo=datetime.UTC).timestamp()
    assert seconds == pytest.approx(expected, abs=1e-5)


def test_a_zone_counts_for_order_and_not_for_the_hour_of_the_day():
    zone = pa.timestamp("s", tz="America/New_York")
    column = pa.array([datetime.datetime(2020, 7, 1, 4, tzinfo=datetime.UTC)], zone)
    assert dates.read(column, dates.TYPED).values % 86400 == 0  # midnight in New York
    assert dates.read(column, dates.TYPED, utc=True).values % 86400 == 4 * 3600
    text = pa.array(["2020-07-01 00:00-04:00"])
    assert dates.read(text, "year-month-day", utc=True).values % 86400 == 4 * 3600


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_written_as_text_read_as_python_reads_them(value):
    assert numbers(pa.array([repr(value)])).values[0] == value


def test_a_factor_puts_back_what_it_took_apart():
    words = RNG.choice(["a", "b ", " c", None], 100).tolist()
    codes, values = factor(pa.chunked_array([words[:30], words[30:]], pa.string()))
    back = [None if code < 0 else values[int(code)].as_py() for code in codes]
    assert back == [None if word is None else word.strip() for word in words]
