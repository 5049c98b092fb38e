"""Whatever comes, a person gets a sentence: no traceback, and no number that is quietly wrong."""

import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attack
from fairsaoml.cli.options import parse_value
from fairsaoml.cli.tables import print_rows, print_runs, print_summary
from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.evaluate.flags import WARNINGS, left_out_words
from fairsaoml.evaluate.summary import summarise
from fairsaoml.learners.registry import configure, registered
from fairsaoml.streams.datasets import home
from fairsaoml.streams.stream import checked
from fairsaoml.streams.synthetic import synthetic
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.stream import stream_from_table

ROWS = 60


def rows(**columns):
    random = np.random.default_rng(0)
    plain = {"x": random.normal(size=ROWS), "s": ["f", "m"] * 30, "y": ["yes", "yes", "no"] * 20}
    return {**plain, **columns}


def opened(source, **options):
    return stream_from_table(source, **{"label": "y", "sensitive": "s", "rows": 30, **options})


# Files


def test_a_file_with_carriage_returns_alone_is_read_as_any_other(tmp_path):
    text = pd.DataFrame(rows()).to_csv(index=False)
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_bytes(text.replace("\n", "\r").encode())
    new.write_text(text)
    for one, other in zip(opened(old).tasks(0), opened(new).tasks(0), strict=True):
        np.testing.assert_array_equal(one.x, other.x)


def test_a_header_of_more_than_64_kib_is_read_whole(tmp_path):
    names = [f"a_column_with_a_rather_long_name_{number:05d}" for number in range(2_000)]
    table = rows(**dict.fromkeys(names, [1] * ROWS), last=np.arange(ROWS) % 7)
    pd.DataFrame(table).to_csv(tmp_path / "wide.csv", index=False)
    assert opened(tmp_path / "wide.csv", columns=["last"]).schema.features == ("last",)


def test_a_first_line_without_end_is_refused(tmp_path):
    (tmp_path / "endless.csv").write_bytes(b"ab," * 2_000_000)
    with pytest.raises(DataError, match="got a first line of more than 4 MiB"):
        opened(tmp_path / "endless.csv")


ODD = {
    "list": pa.array([[1, 2]] * ROWS),
    "struct": pa.array([{"a": 1}] * ROWS),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "uuid": pa.array([uuid.UUID(int=n).bytes for n in range(ROWS)], pa.uuid()),
    "bytes": pa.array([b"a", b"b"] * 30, pa.binary_view()),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_column_of_odd_type_is_no_input_and_no_role(kind, tmp_path):
    table = pa.table(rows(odd=ODD[kind]))
    sources = [table]
    if kind != "bytes":  # Parquet has no views
        pq.write_table(table, tmp_path / "odd.parquet")
        sources.append(tmp_path / "odd.parquet")
    for source in sources:
        stream = opened(source)
        assert stream.schema.features == ("x",)
        assert any("not one value per row: odd" in note for note in stream.notes)
        for role in ({"label": "odd"}, {"sensitive": "odd"}, {"time": "odd"}, {"domain": "odd"}):
            with pytest.raises(DataError, match="expected texts, numbers or dates in the column"):
                opened(source, **role)


def test_views_and_run_lengths_are_texts_like_any_other():
    texts = ["a", "b"] * 30
    view = pa.array(texts, pa.string_view())
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, ROWS + 1), pa.int32()), pa.array(texts)
    )
    for column in (view, runs):
        stream = opened(pa.table(rows(odd=column)), sensitive="odd")
        assert stream.schema.attributes == (("odd", ("a", "b")),)


def test_a_dataframe_may_call_its_columns_by_numbers_or_pairs():
    x, s, y = rows().values()
    assert opened(pd.DataFrame({0: x, 1: s, 2: y}), label=2, sensitive=1).schema.features == ("0",)
    pairs = pd.DataFrame({("a", "x"): x, ("a", "s"): s, ("b", "y"): y})
    stream = opened(pairs, label=("b", "y"), sensitive=[("a", "s")])
    assert stream.schema.features == ("('a', 'x')",)


def test_groups_may_be_pairs():
    table = pd.DataFrame(rows(pair=[("a", 1), ("b", 2)] * 30))
    assert opened(table, sensitive="pair").schema.attributes[0].levels == ("('a', 1)", "('b', 2)")


@pytest.mark.parametrize(
    "options",
    [
        {"label": None},
        {"label": 1.5},
        {"sensitive": None},
        {"sensitive": {"a": 1}},
        {"rows": 5.5},
        {"rows": 10**30},
        {"rows": True},
        {"rows": None, "tasks": "x"},
        {"rows": None, "time": "x", "every": 5},
        {"rows": None, "time": "x", "every": "9" * 6_000 + "D"},
        {"positive": [1, 2]},
        {"positive": 10**30},
        {"favourable": 3},
        {"time": "x", "time_format": 5},
    ],
    ids=str,
)
def test_a_setting_of_the_wrong_kind_or_an_absurd_size_is_refused(options):
    with pytest.raises(ConfigError):
        opened(pa.table(rows()), **options)


# Numbers


def test_the_year_1_is_not_2001():
    seconds = dates.of_text(pa.array(["0001-02-03", "2001-02-03"]), "year-month-day")
    years = seconds.astype("M8[s]").astype("M8[Y]").astype(int) + 1970
    assert years.tolist() == [1, 2001]
    short = dates.of_text(pa.array(["2/3/01", "2/3/0001"]), "month/day/year")
    assert (short[0] - short[1]) / dates.YEAR == pytest.approx(2000, abs=0.01)


def test_a_column_with_many_infinities_is_a_number():
    values = np.random.default_rng(0).normal(size=ROWS)
    values[::5] = np.inf
    for column in (values, [str(value) for value in values]):
        assert [c.kind for c in fit_encoder(pa.table({"v": column})).columns] == ["numeric"]


@pytest.mark.parametrize("wild", [1e30, -1e308, 1e6])
def test_one_wild_cell_does_not_silence_a_column(wild):
    values = np.random.default_rng(0).normal(size=200)
    x = fit_encoder(pa.table({"v": values})).transform(pa.table({"v": values}))[:, 0]
    values[17] = wild
    spoiled = fit_encoder(pa.table({"v": values})).transform(pa.table({"v": values}))[:, 0]
    assert np.abs(spoiled[17]) == 5
    others = np.arange(200) != 17
    assert spoiled[others].std() > 0.4
    assert np.corrcoef(np.sort(x[others]), np.sort(spoiled[others]))[0, 1] > 0.95


@pytest.mark.parametrize("scale", [1e307, 1e-310])
def test_a_column_of_any_size_is_standardised(scale):
    values = np.random.default_rng(0).normal(size=200)
    table = pa.table({"v": values * scale})
    x = fit_encoder(table).transform(table)
    assert np.isfinite(x).all()
    assert x.std() == pytest.approx(1, abs=0.05)


def test_a_saved_encoder_of_version_1_encodes_as_it_did():
    saved = {
        "version": 1,
        "columns": [
            {
                "kind": "numeric",
                "name": "v",
                "center": 1.0,
                "scale": 2.0,
                "unit": None,
                "flag": False,
            },
            {"kind": "categorical", "name": "job", "levels": ["Cook", "cook"], "share": 0.5},
        ],
        "dropped": [],
        "label": {"column": "y", "positive": "yes", "negative": "no"},
        "sensitive": [{"column": "race", "levels": ["a", "missing"], "value": None}],
    }
    encoder = Encoder.from_json(saved)
    table = pa.table({"v": [5.0], "job": ["cook"], "race": pa.array([None], pa.string())})
    assert encoder.transform(table).tolist() == [[2.0, 1.0]]
    assert encoder.sensitive[0].codes(table).codes.tolist() == [1]
    assert encoder.schema.attributes == (Attribute("race", ("a", "missing")),)


# Settings


@pytest.mark.parametrize("name", registered())
def test_every_number_that_can_be_set_has_both_bounds(name):
    for key, item in registered()[name].settings.items():
        numeric = isinstance(item.default, int | float) and not isinstance(item.default, bool)
        for absurd in (1e30, -1e30, 10**30, float("nan"), {}, [1e9], "much"):
            if numeric:
                with pytest.raises(ConfigError, match=f"{key} must be"):
                    configure(name, {key: absurd})


def test_settings_of_a_stream_have_bounds_too():
    with pytest.raises(
        ConfigError, match=r"rows must be a whole number >= 1, .*; use 1 to 1000000"
    ):
        synthetic(rows=10**12)


def test_a_hundred_thousand_brackets_are_a_text():
    assert parse_value("[" * 100_000) == "[" * 100_000


def test_a_name_that_is_no_utf8_is_refused_in_one_line(command):
    said = command("run", "\udcff.csv")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "expected words and file names in UTF-8" in said.err


# What was not learned from


def line(round, **more):
    none = {"rows": 0, "predicted_positive": 0, "y1_rows": 0, "true_positive": 0}
    counts = {"s": dict.fromkeys("fm", none | {"y0_rows": 0, "false_positive": 0})}
    return {
        "round": round,
        "seed": 0,
        "domain": "[/north]",
        "counts": counts,
        "warnings": [],
    } | more


def test_a_summary_counts_what_was_left_out_and_prints_it_beside_any_domain(capsys):
    lines = [
        line(1, warnings=[WARNINGS["empty"]], left_out=30),
        line(2, warnings=[WARNINGS["not_finite"]]),
        line(3, left_out=2),
    ]
    summary = summarise(lines, learner="l", stream="[s]", seeds=[0], columns_left_out=4)
    assert summary["left_out"] == {"rounds": 2, "updates": 1, "rows": 32, "columns": 4}
    print_summary(summary)
    print_rows(["[a]"], [["[/north]"]])
    said = capsys.readouterr().out
    for words in ("[/north]", "on [s]", "in 2 of 3 rounds", "1 update was", "32 rows", "4 columns"):
        assert words in said


def test_what_was_left_out_is_said_with_the_reason():
    """The journal's own words for it are those that a stream writes."""
    labels = rows()["y"]
    labels[1] = labels[3] = None
    tasks = list(opened(pa.table(rows(y=labels))).tasks(0))
    x = np.array([[1.0], [np.nan]])
    broken = Task(x=x, y=np.zeros(2), group=np.zeros((2, 1), int))
    broken = checked(broken, Schema(("x",), (Attribute("s", ("f", "m")),)), 1)
    lines = [
        line(i, seed=seed, warnings=list(task.warnings), left_out=task.left_out)
        for i, task in enumerate([tasks[0], broken, tasks[0]], start=1)
        for seed in (0, 1)
    ]
    lines += [line(4, left_out=1200)]
    reasons = ["as asked", "free text", "as asked"]
    summary = summarise(
        lines, learner="l", stream="s", seeds=[0, 1], columns_left_out=3, column_reasons=reasons
    )
    assert left_out_words(summary) == [
        "4 rows without a label were left out.",
        "1 row with NaN or infinity was left out.",
        "1,200 rows were left out.",
        "3 columns were left out: as asked (2); free text (1).",
    ]
    few = summary | {"left_out": {"columns": 2, "reasons": {"columns": {"free text": 2}}}}
    assert left_out_words(few) == ["2 columns were left out: free text."]


@pytest.mark.parametrize("narrow", [80, 60, 40])
def test_the_names_of_runs_are_whole_in_a_narrow_window(narrow, monkeypatch, capsys):
    learner = "fairsaoml-decoupled"
    names = [f"x-sqf-large-{learner}-{number}" for number in range(2, 5)]
    runs = [
        {
            "name": name,
            "stream": "x-sqf-large.csv.gz",
            "learner": learner,
            "rounds": 146,
            "verdict": "not enough rows to tell",
            "when": "2026-11-18 21:00",
        }
        for name in names
    ]
    monkeypatch.setenv("COLUMNS", "200")
    print_runs(runs)
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 4
    assert all(str(value) in said for value in runs[0].values())
    monkeypatch.setenv("COLUMNS", str(narrow))
    print_runs(runs)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= narrow
    assert [line.split()[0] for line in said.splitlines() if line.startswith("x-")] == names
    assert "--json, has more: learner, stream" in " ".join(said.split())
    if narrow == 80:
        assert all(word in said for word in ("rounds", "146", "rows to tell", "2026-11-18"))
        print_runs([run | {"not_judged": ["asian"]} for run in runs])
        assert "asian" in capsys.readouterr().out
    other = "a" * 78
    print_runs([run | {"name": other} for run in runs])
    assert capsys.readouterr().out.split().count(other) == (3 if narrow == 80 else 0)


def test_rows_that_are_left_out_are_counted():
    labels = rows()["y"]
    labels[3] = None
    tasks = list(opened(pa.table(rows(y=labels))).tasks(0))
    assert [task.left_out for task in tasks] == [1, 0]
    schema = Schema(("x",), (Attribute("s", ("f", "m")),))
    x = np.array([[1.0], [np.nan]])
    task = Task(x=x, y=np.zeros(2), group=np.zeros((2, 1), int), left_out=2)
    assert checked(task, schema, 1).left_out == 3


def test_a_run_that_learned_nothing_is_a_failure(monkeypatch, tmp_path):
    import fairsaoml.cli.run as command
    from fairsaoml.core.errors import RunError
    from fairsaoml.runs.folder import write_spec

    write_spec(tmp_path, {"learner": {"config": {}}})
    summary = summarise([line(1, warnings=[WARNINGS["empty"]])], learner="l", stream="s", seeds=[0])
    monkeypatch.setattr("fairsaoml.report.write_report", lambda folders, path: path)
    with pytest.raises(RunError, match="nothing was learned in any of 1 rounds"):
        command.finish(tmp_path, summary, as_json=False)


# Downloads


class Answer:
    is_redirect = True
    url = "https://files.example.org/data.zip"

    def __init__(self, location):
        self.headers = {"location": location}


def test_a_redirect_stays_with_the_site_that_was_asked():
    home._check_redirect(Answer("https://www.example.org/other.zip"))
    home._check_redirect(Answer("/other.zip"))
    for elsewhere in ("https://example.com/data.zip", "https://example.org.evil.net/x"):
        with pytest.raises(DataError, match="got a redirect to"):
            home._check_redirect(Answer(elsewhere))


# A small form of `make attack`


@pytest.mark.parametrize("kind", attack.KINDS)
def test_spoiled_input_gives_a_result_or_a_sentence(kind):
    ended = attack.attack(kind, 25)
    assert sum(ended.values()) == 25


def test_what_nobody_has_spoiled_is_taken(tmp_path):
    attack.check_run(attack.killed().files | {"../t.csv": attack.killed().table}, tmp_path)
