"""MovieLens: the published files, the 90 tasks, and that nothing leaks from later ones."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tools.group_gaps import movielens_gaps

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.datasets import movielens as module
from fairsaoml.streams.datasets.movielens import movielens, read_ratings, stream_of_ratings
from fairsaoml.streams.table.encoder import Encoder
from published import REAL, grouplens, grouplens_files, needs_real_data


@pytest.fixture
def ratings(tmp_path: Path) -> pa.Table:
    return read_ratings(grouplens(tmp_path / "ml-100k", 90))


def test_ratings_are_put_in_order_of_time(ratings: pa.Table) -> None:
    times = ratings["timestamp"].to_numpy()
    assert ratings.num_rows == 90
    assert (np.diff(times) > 0).all()


def test_equal_times_are_ordered_by_user_and_film(tmp_path: Path) -> None:
    folder = grouplens(tmp_path)
    (folder / "u.data").write_text("2\t3\t5\t100\n1\t9\t4\t100\n1\t2\t3\t100\n1\t5\t3\t99\n")
    table = read_ratings(folder)
    assert list(zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)) == [
        (1, 5),
        (1, 2),
        (1, 9),
        (2, 3),
    ]


def test_an_archive_holds_the_same_ratings(ratings: pa.Table, tmp_path: Path) -> None:
    archive = tmp_path / "ml-100k.zip"
    with zipfile.ZipFile(archive, "w") as inside:
        for name, content in grouplens_files(90).items():
            inside.writestr(f"ml-100k/{name}", content.encode("latin-1"))
    assert read_ratings(archive).equals(ratings)


def test_three_copies_of_thirty_equal_tasks_the_middle_one_negated(ratings: pa.Table) -> None:
    stream = stream_of_ratings(ratings)
    tasks = list(stream.tasks(0))
    assert stream.length == len(tasks) == 90
    assert [task.domain for task in tasks[::30]] == ["first copy", "flipped copy", "third copy"]
    assert {len(task.y) for task in tasks} == {3}
    for first, flipped, third in zip(tasks[:30], tasks[30:60], tasks[60:], strict=True):
        np.testing.assert_array_equal(flipped.x, -first.x)
        np.testing.assert_array_equal(third.x, first.x)
        np.testing.assert_array_equal(flipped.y, first.y)
        np.testing.assert_array_equal(flipped.group, first.group)


def test_labels_and_groups_are_those_of_the_rows(ratings: pa.Table) -> None:
    tasks = list(stream_of_ratings(ratings).tasks(0))[:30]
    rating, gender = ratings["rating"].to_numpy(), np.array(ratings["gender"].to_pylist())
    np.testing.assert_array_equal(np.concatenate([task.y for task in tasks]), rating > 3)
    np.testing.assert_array_equal(
        np.concatenate([task.group[:, 0] for task in tasks]), gender == "F"
    )


def test_features_are_age_occupation_and_genres_and_no_ids(ratings: pa.Table) -> None:
    features = stream_of_ratings(ratings).schema.features
    assert len(features) == 1 + 22 + 19  # an occupation not on the list has a place of its own
    assert features[0] == "age"
    assert {name.split("=")[0].split("_")[0] for name in features} == {"age", "occupation", "genre"}


def test_the_set_items_adds_one_feature_per_film(ratings: pa.Table) -> None:
    paper, items = stream_of_ratings(ratings), stream_of_ratings(ratings, "items")
    task = next(items.tasks(0))
    width = len(paper.schema.features)
    assert len(items.schema.features) == width + 1683
    film = ratings["item"].to_pylist()[: len(task.y)]
    np.testing.assert_array_equal(task.x[:, width:].argmax(axis=1) + 1, film)
    assert (task.x[:, width:].sum(axis=1) == 1).all()


def test_scaling_knows_only_the_first_task(ratings: pa.Table) -> None:
    first = 90 // 30
    older = np.where(np.arange(90) < first, 0, 30).astype(np.int32)
    changed = ratings.set_column(
        ratings.column_names.index("age"), "age", pa.array(ratings["age"].to_numpy() + older)
    )
    before, after = stream_of_ratings(ratings), stream_of_ratings(changed)
    assert before.encoder == after.encoder
    np.testing.assert_array_equal(next(before.tasks(0)).x, next(after.tasks(0)).x)


def test_new_rows_are_encoded_by_the_saved_encoder(ratings: pa.Table) -> None:
    stream = stream_of_ratings(ratings)
    saved = Encoder.from_json(json.loads(json.dumps(stream.encoder)))
    first = next(stream.tasks(0))
    x, notes = saved.encode(ratings.slice(0, len(first.y)))
    np.testing.assert_array_equal(x, first.x)
    assert notes == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("u.data", "1\t2\t5\n", r"u\.data: .* Expected 4 columns, got 3"),
        ("u.data", "1\t2\tfive\t100\n", r"u\.data: .* invalid value 'five'"),
        ("u.data", "77\t2\t5\t100\n", "expected no user but those that .* lists, got 77"),
        ("u.user", "1|24|X|technician|85711\n", "got 'X'"),
        ("u.user", "1|24|M|astronaut|85711\n", "got 'astronaut'"),
        ("u.item", "1|Toy Story|1995\n", r"u\.item: .* Expected 24 columns, got 3"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = grouplens(tmp_path, 1)
    (folder / "u.data").write_text("1\t2\t5\t100\n")
    (folder / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_ratings(folder)


def test_a_folder_or_file_without_ratings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected u\.data, u\.user, u\.item"):
        read_ratings(tmp_path)
    (tmp_path / "ml-100k.zip").write_text("<html>")
    with pytest.raises(DataError, match="expected a folder or a whole zip archive"):
        read_ratings(tmp_path / "ml-100k.zip")


def test_fewer_ratings_than_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least 30 rows, one for each task, got 29"):
        stream_of_ratings(read_ratings(grouplens(tmp_path, 29)))


def test_other_ratings_in_the_data_home_are_refused(tmp_path: Path) -> None:
    grouplens(tmp_path / "movielens")
    with pytest.raises(DataError, match=r"expected the 100,000 ratings .* got others \(90 rows\)"):
        movielens(home=tmp_path)


def test_a_missing_data_set_says_the_command_that_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"get it with: fairsaoml data get movielens$"):
        movielens()
    assert not (tmp_path / "nowhere").exists()


def test_an_unknown_feature_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one of paper, items, got 'item'; did you mean 'items'"):
        movielens(features="item", home=tmp_path)


@needs_real_data
@pytest.mark.real_data
def test_facts_of_the_real_stream() -> None:
    stream = movielens(home=REAL)
    tasks = list(stream.tasks(0))
    copy = tasks[:30]
    y = np.concatenate([task.y for task in copy])
    women = np.concatenate([task.group[:, 0] for task in copy]) == 1
    assert (stream.length, len(tasks), len(stream.schema.features)) == (90, 90, 42)
    assert sum(len(task.y) for task in tasks) == 300_000
    assert [len(task.y) for task in copy] == [3334] * 10 + [3333] * 20
    assert y.sum() == 55_375
    assert (women.sum(), y[women].sum(), y[~women].sum()) == (25_740, 14_278, 41_097)
    assert y[women].mean() - y[~women].mean() == pytest.approx(0.0013, abs=5e-5)
    assert stream.schema.attributes[0].levels == ("M", "F")
    assert stream.encoder is not None
    age = stream.encoder["columns"][0]
    assert (age["center"], age["scale"]) == pytest.approx((27.29694, 8.15091), abs=1e-5)


@needs_real_data
@pytest.mark.real_data
def test_the_gap_swings_from_month_to_month() -> None:
    months = movielens_gaps(module.load_ratings(REAL))
    assert [month.period for month in months][::7] == ["1997-09", "1998-04"]
    assert sum(month.rows for month in months) == 100_000
    found = [month.gap for month in months]
    assert (min(found), max(found)) == pytest.approx((-0.107, 0.082), abs=5e-4)


@needs_real_data
@pytest.mark.real_data
def test_features_and_films_cover_the_real_rows() -> None:
    task = next(movielens(features="items", home=REAL).tasks(0))
    assert task.x.shape == (3334, 1725)
    assert np.isfinite(task.x).all()
    assert (task.x[:, 42:-1].sum(axis=1) == 1).all()
