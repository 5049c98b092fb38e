"""Labels may come late, out of order, twice or never: no row is lost, doubled or scored anew."""

import contextlib
import json
import runpy
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import delayed_service
from delayed_service import Running, Service
from fairsaoml.core.errors import ConfigError, DataError, RunError
from fairsaoml.estimators.sklearn import FairGLCClassifier
from fairsaoml.evaluate.streaming import StreamingMetric
from fairsaoml.serve import store
from fairsaoml.serve.delayed import DelayedLabels, from_rows, to_rows


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Recorder:
    """A model that remembers what it was taught, and predicts how many rounds it has learned."""

    def __init__(self):
        self.n_rounds_, self.taught = 0, []

    def predict(self, X):
        return np.full(len(X), self.n_rounds_)

    def partial_fit(self, X, y, sensitive_features=None):
        groups = None if sensitive_features is None else list(sensitive_features)
        self.taught.append((np.asarray(X)[:, 0].tolist(), list(y), groups))
        self.n_rounds_ += 1


class Desk:
    """DelayedLabels with a recorder, a clock in hand, and rows that are their own numbers."""

    def __init__(self, **settings):
        self.clock, self.tasks, self.model = Clock(), [], Recorder()
        self.delayed = DelayedLabels(
            self.model, clock=self.clock, on_close=self.tasks.append, **settings
        )

    def issue(self, rows, at=None):
        self.clock.now = self.clock.now if at is None else at
        first = self.delayed.tally.issued + 1
        numbers = range(first, first + rows)
        return self.delayed.issue(
            [[float(number)] for number in numbers],
            sensitive_features=["even" if number % 2 == 0 else "odd" for number in numbers],
        )

    def label(self, *ids, at=None):
        self.clock.now = self.clock.now if at is None else at
        self.delayed.label(list(ids), [label_of(id) for id in ids])

    def tick(self, at):
        self.clock.now = at
        self.delayed.tick()

    @property
    def closed(self):
        return [task.ids for task in self.tasks]


def label_of(id):
    return (id // 3) % 2


def content(task):
    """All of a closed task, in plain data."""
    return [
        value.tolist() if isinstance(value, np.ndarray) else value
        for value in task._asdict().values()
    ]


# What a task is


def test_a_task_is_so_many_predictions_in_the_order_of_issue():
    desk = Desk(task_rows=4)
    for rows in (3, 6, 1):
        desk.issue(rows)
    desk.label(9, 5, 6, 3, 8, 2, 7, 10, 4)
    assert desk.closed == []  # tasks close in order, and 1 is missing
    desk.label(1)
    assert desk.closed == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert [task.why for task in desk.tasks] == ["complete", "complete"]
    assert desk.model.taught[1] == (
        [5.0, 6.0, 7.0, 8.0],
        [label_of(id) for id in (5, 6, 7, 8)],
        ["odd", "even", "odd", "even"],
    )


@given(st.data())
def test_labels_in_any_order_and_any_portions_close_the_same_tasks(data):
    rows, task_rows = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 7))
    order = data.draw(st.permutations(range(1, rows + 1)))
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=5)))
    desk, in_order = Desk(task_rows=task_rows), Desk(task_rows=task_rows)
    for each in (desk, in_order):
        each.issue(rows)
    for begin, end in zip([0, *cuts], [*cuts, rows], strict=True):
        desk.label(*order[begin:end])
    in_order.label(*range(1, rows + 1))
    assert len(desk.tasks) == rows // task_rows
    assert list(map(content, desk.tasks)) == list(map(content, in_order.tasks))
    assert desk.model.taught == in_order.model.taught


def test_a_task_by_time_takes_the_predictions_of_so_many_seconds():
    desk = Desk(task_seconds=10)
    desk.issue(2, at=5)
    desk.issue(1, at=14.9)
    desk.label(1, 2, 3)
    assert desk.closed == []
    desk.issue(1, at=15)  # ten seconds after the first one
    assert desk.closed == [[1, 2, 3]]
    desk.label(4, at=24)
    desk.tick(at=25)
    assert desk.closed == [[1, 2, 3], [4]]


def test_number_or_time_cuts_whichever_comes_first():
    desk = Desk(task_rows=3, task_seconds=10)
    desk.issue(4, at=0)
    desk.issue(1, at=20)
    desk.label(1, 2, 3, 4, 5)
    assert desk.closed == [[1, 2, 3], [4]]


def test_a_full_task_waits_so_long_and_closes_with_the_labels_that_are_here():
    desk = Desk(task_rows=3, wait_seconds=10)
    desk.issue(3, at=5)
    desk.label(3)
    desk.tick(at=14.9)
    assert desk.closed == []
    desk.tick(at=15)
    assert desk.closed == [[3]]
    assert (desk.tasks[0].why, desk.tasks[0].unlabelled) == ("time", 2)
    assert desk.delayed.waiting == [1, 2]


def test_a_task_without_any_label_closes_and_nothing_is_learned():
    desk = Desk(task_rows=2, wait_seconds=1)
    desk.issue(2, at=0)
    desk.tick(at=1)
    [task] = desk.tasks
    assert (task.round, task.ids, len(task.X)) == (None, [], 0)
    assert desk.model.taught == []
    desk.issue(2, at=2)
    desk.label(3, 4)
    assert (desk.tasks[1].number, desk.tasks[1].round) == (2, 1)


steps = st.lists(
    st.tuples(
        st.floats(0, 6), st.one_of(st.integers(1, 5), st.lists(st.integers(1, 40), max_size=6))
    ),
    max_size=25,
)


def play(desk, steps, ticks=()):
    """Waits, then issues rows (a number) or labels those of a list that wait."""
    now = 0.0
    for place, (wait, what) in enumerate(steps):
        for share in ticks[place % len(ticks)] if ticks else ():
            desk.tick(at=now + share * wait)
        now = desk.clock.now = now + wait
        if isinstance(what, int):
            desk.issue(what)
        else:
            desk.delayed.tick()
            desk.label(*(id for id in dict.fromkeys(what) if id in desk.delayed.waiting))
    return desk


TIMED = {"task_rows": 6, "task_seconds": 7.0, "wait_seconds": 9.0, "max_rows": 12}


@given(steps, st.lists(st.lists(st.floats(0, 1), max_size=3).map(sorted), min_size=1, max_size=4))
def test_how_often_time_is_looked_at_changes_nothing(steps, ticks):
    often, seldom = play(Desk(**TIMED), steps, ticks), play(Desk(**TIMED), steps)
    assert list(map(content, often.tasks)) == list(map(content, seldom.tasks))
    assert often.delayed.tally == seldom.delayed.tally


@given(steps, st.sampled_from(["next", "drop"]))
def test_every_prediction_is_learned_dropped_expired_or_still_there_and_only_once(steps, late):
    desk = play(Desk(late=late, **TIMED), steps)
    tally, learned = desk.delayed.tally, Counter(id for ids in desk.closed for id in ids)
    assert set(learned.values()) <= {1}
    labelled_but_open = desk.delayed.held - len(desk.delayed.waiting)
    assert tally.labelled == learned.total() + tally.dropped + labelled_but_open
    assert tally.issued == tally.labelled + tally.expired + len(desk.delayed.waiting)
    assert [row for rows, _, _ in desk.model.taught for row in rows] == list(learned)
    desk.delayed.close_all()
    assert desk.delayed.held == len(desk.delayed.waiting)  # nothing that is labelled stays behind
    assert sum(map(len, desk.closed)) == tally.labelled - tally.dropped


def test_time_never_runs_backwards_though_the_clock_is_set_back():
    desk = Desk(task_rows=1, wait_seconds=10)
    desk.issue(1, at=100)
    desk.label(1)
    desk.issue(1, at=3)  # back by 97 seconds
    desk.tick(at=20)
    assert desk.closed == [[1]]
    desk.tick(at=110)
    assert desk.closed == [[1], []]


# Labels too late, twice, unknown, never


@pytest.mark.parametrize("late", ["next", "drop"])
def test_a_late_label_is_counted_and_goes_where_the_rule_says(late):
    desk = Desk(task_rows=2, wait_seconds=5, late=late)
    desk.issue(2, at=0)
    desk.label(1)
    desk.tick(at=5)
    desk.issue(2, at=6)
    desk.label(4, 2, 3)
    assert desk.delayed.tally.late == 1
    if late == "next":
        assert desk.closed == [[1], [2, 3, 4]]
        assert (desk.tasks[1].late, desk.tasks[1].unlabelled) == (1, 0)
        assert desk.tasks[1].prediction.tolist() == [0, 1, 1]  # 2 was issued before the first round
    else:
        assert desk.closed == [[1], [3, 4]]
        assert desk.delayed.tally.dropped == 1
    assert desk.delayed.held == 0


def test_late_rows_alone_become_a_task_when_the_stream_ends():
    desk = Desk(task_rows=2, wait_seconds=5)
    desk.issue(2, at=0)
    desk.label(2, at=9)
    assert desk.closed == [[]]
    desk.delayed.close_all()
    assert desk.closed == [[], [2]]
    desk.issue(2)
    desk.label(3, 4)
    assert [task.number for task in desk.tasks] == [1, 2, 3]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([99], "99 .never issued, learned, or expired"),
        ([4, 1], "1 .never issued, learned"),
        ([4, 3], "3 .labelled already"),
        ([4, 4], "4 .labelled already"),
        ([3, 98, 99], "3 .labelled already. and 98, 99 .never"),
        (["4"], "'4' .never issued"),
    ],
)
def test_a_label_for_an_id_that_does_not_wait_is_an_error_and_nothing_is_taken(ids, words):
    desk = Desk(task_rows=2)
    desk.issue(4)
    desk.label(1, 2, 3)
    before = desk.delayed.tally
    with pytest.raises(DataError, match=f"{words}.*nothing of this call was taken"):
        desk.delayed.label(ids, [0] * len(ids))
    assert desk.delayed.tally == before
    assert desk.delayed.waiting == [4]


def test_where_they_are_counted_unknown_and_second_labels_change_nothing_else():
    desk = Desk(task_rows=2, unknown="count")
    desk.issue(4)
    desk.label(1, 2, 3)
    desk.delayed.label([3, 99, 4, 1], [1 - label_of(3), 0, label_of(4), 0])
    assert (desk.delayed.tally.unknown, desk.delayed.tally.repeated) == (2, 1)
    assert desk.closed == [[1, 2], [3, 4]]
    assert desk.model.taught[1][1] == [label_of(3), label_of(4)]  # the first label stays


def test_predictions_nobody_labels_expire_oldest_first_and_their_task_goes_on():
    desk = Desk(task_rows=3, max_rows=5)
    desk.issue(3)
    desk.label(2)
    desk.issue(3)
    assert desk.delayed.tally.expired == 1
    assert desk.delayed.waiting == [3, 4, 5, 6]
    with pytest.raises(DataError, match="expired"):
        desk.label(1)
    desk.label(3)
    assert desk.closed == [[2, 3]]
    assert desk.tasks[0].unlabelled == 1


@settings(max_examples=20)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([{}, {"wait_seconds": 3.0}, {"task_seconds": 2.0}])
)
def test_memory_stays_within_its_bound_on_an_endless_stream(seed, also):
    random = np.random.default_rng(seed)
    desk = Desk(task_rows=5, max_rows=20, **also)
    for now in range(150):
        desk.issue(int(random.integers(1, 9)), at=float(now))
        waiting = desk.delayed.waiting
        desk.label(*(id for id in waiting if random.random() < 0.1))
        assert desk.delayed.held <= 20
    for table in ("rows", "tasks"):
        [(count,)] = desk.delayed._tasks.query(f"SELECT count(*) FROM {table}")
        assert count <= 20
    assert desk.delayed.tally.expired > 0


def test_late_rows_that_no_task_comes_for_do_not_pile_up():
    desk = Desk(task_rows=1, wait_seconds=0, max_rows=3)
    desk.issue(3, at=0)
    desk.tick(at=1)
    desk.label(1, 2, 3)
    assert desk.delayed.held == 3
    desk.issue(1, at=2)  # closes at once, and takes them along
    assert desk.closed[-1] == [1, 2, 3]
    assert desk.delayed.held == 1


# What is learned and scored


def test_a_task_is_scored_by_its_predictions_as_issued():
    desk = Desk(task_rows=2)
    first, second = desk.issue(2), desk.issue(2)
    desk.label(1, 2)
    third = desk.issue(2)
    desk.label(3, 4, 5, 6)
    issued = [each.prediction.tolist() for each in (first, second, third)]
    assert issued == [[0, 0], [0, 0], [1, 1]]
    assert [task.prediction.tolist() for task in desk.tasks] == issued


def test_a_task_is_scored_before_it_is_learned():
    learned = []
    model = Recorder()
    delayed = DelayedLabels(
        model, task_rows=1, on_close=lambda task: learned.append(model.n_rounds_)
    )
    delayed.issue([[1.0], [2.0]])
    delayed.label([1, 2], [0, 1])
    assert learned == [0, 1]
    assert model.n_rounds_ == 2


@pytest.mark.parametrize("fails", ["partial_fit", "on_close"])
def test_what_fails_is_tried_again_and_each_task_is_scored_and_learned_once(fails):
    desk = Desk(task_rows=1)
    right = {"partial_fit": desk.model.partial_fit, "on_close": desk.delayed._on_close}

    def fail(*rows, **also):
        raise ZeroDivisionError

    holder, name = (desk.model, fails) if fails == "partial_fit" else (desk.delayed, "_on_close")
    setattr(holder, name, fail)
    desk.issue(2)
    with pytest.raises(ZeroDivisionError):
        desk.label(1, 2)
    assert desk.delayed.tally.labelled == 2  # taken, though not learned
    setattr(holder, name, right[fails])
    desk.delayed.tick()
    assert desk.closed == [[1], [2]]
    assert [rows for rows, _, _ in desk.model.taught] == [[1.0], [2.0]]


def test_a_streaming_metric_over_closed_tasks_is_that_of_all_their_rows():
    random = np.random.default_rng(0)
    metric = StreamingMetric(["accuracy", "selection_rate"], window=2)
    model = Running()
    delayed = DelayedLabels(
        model,
        task_rows=5,
        on_close=lambda task: metric.update(
            task.y, task.prediction, sensitive_features=task.sensitive_features
        ),
    )
    X, y = random.integers(0, 9, (20, 1)), random.integers(0, 2, 20)
    groups = np.array(list("abab" * 5))
    predictions = []
    for rows in np.split(np.arange(20), 4):
        issued = delayed.issue(X[rows], sensitive_features=groups[rows])
        predictions += issued.prediction
        delayed.label(issued.ids[::-1], y[rows][::-1])
    expected = StreamingMetric(["accuracy", "selection_rate"])
    expected.update(y[10:], predictions[10:], sensitive_features=groups[10:])
    assert metric.counts == expected.counts


def test_any_incremental_classifier_will_do_where_there_are_no_sensitive_features():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = SGDClassifier(loss="log_loss", random_state=0)
    by_hand = SGDClassifier(loss="log_loss", random_state=0)
    for each in (model, by_hand):
        each.partial_fit(X[:20], y[:20], classes=["no", "yes"])
    delayed = DelayedLabels(model, task_rows=20)
    issued = delayed.issue(X[20:])
    assert issued.probability.shape == (40, 2)
    delayed.label(issued.ids[::-1], y[20:][::-1])
    by_hand.partial_fit(X[20:40], y[20:40])
    by_hand.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)


def test_a_pipeline_whose_preprocessing_is_fitted_learns_by_its_last_step():
    X = np.random.default_rng(0).normal(size=(40, 2)) * 9
    y = (X[:, 0] > 0).astype(int)
    scaler = StandardScaler().fit(X)
    by_hand = SGDClassifier(random_state=0).partial_fit(scaler.transform(X[:20]), y[:20], [0, 1])
    model = make_pipeline(scaler, clone(by_hand))
    model[-1].partial_fit(scaler.transform(X[:20]), y[:20], [0, 1])
    delayed = DelayedLabels(model, task_rows=20)
    issued = delayed.issue(X[20:])
    delayed.label(issued.ids, y[20:])
    by_hand.partial_fit(scaler.transform(X[20:]), y[20:])
    np.testing.assert_array_equal(model[-1].coef_, by_hand.coef_)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LogisticRegression(), "with partial_fit, got LogisticRegression"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "with partial_fit, got Logistic"),
        (make_pipeline(StandardScaler(), SGDClassifier()), "is fitted, got StandardScaler"),
        (None, "with predict, got NoneType"),
    ],
)
def test_a_model_that_cannot_learn_is_refused_before_anything_is_issued(model, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        DelayedLabels(model, task_rows=20, journal=tmp_path / "events.sqlite")
    assert not (tmp_path / "events.sqlite").exists()


# The journal


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the service does when nobody kills it; its store's files before they were merged."""
    folder = tmp_path_factory.mktemp("undisturbed")
    service = Service(folder)
    files = {}
    closing = service.delayed.close

    def close():
        for path in (folder / "events.sqlite", folder / "events.sqlite-wal"):
            files[path.name] = path.read_bytes()
        closing()

    service.delayed.close = close
    return service.run(), files


def test_the_service_that_is_killed_meets_everything_that_can_happen(undisturbed, tmp_path):
    done, files = undisturbed
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with contextlib.closing(sqlite3.connect(tmp_path / "events.sqlite")) as opened:
        reasons = {why for (why,) in opened.execute("SELECT why FROM tasks")}
    assert reasons >= {"complete", "time", "asked"}
    assert all(done["tally"][name] for name in ("late", "expired", "unknown", "repeated"))
    assert done["rounds"] == done["tally"]["rounds"] > 3 * delayed_service.SAVE_EVERY


def serve(folder, *death):
    """The service in a process of its own."""
    script = Path(delayed_service.__file__)
    words = [sys.executable, str(script), str(folder), *map(str, death)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_killed_again_and_again_it_goes_on_as_if_nothing_had_happened(tmp_path, undisturbed):
    done, _ = undisturbed
    random = np.random.default_rng(0)
    deaths = [
        ("statement", 20),
        ("learning", 1),
        ("learned", 1),
        ("saved", 1),
        *(("statement", int(random.integers(1, 400))) for _ in range(4)),
        ("learned", 2),
        ("learning", 3),
    ]
    for death in deaths:
        assert serve(tmp_path, *death).returncode == -signal.SIGKILL, death
    last = serve(tmp_path)
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout) == done


def test_a_log_cut_anywhere_is_gone_on_with_to_the_same_end(tmp_path, undisturbed, monkeypatch):
    monkeypatch.setattr(store, "SYNCHRONOUS", "OFF")  # many runs, and no power will fail
    done, files = undisturbed
    [name] = [name for name in files if name.endswith("-wal")]
    log = files[name]
    for cut in [0, 1, *range(5230, len(log), len(log) // 15), len(log) - 1, len(log)]:
        folder = tmp_path / str(cut)
        folder.mkdir()
        for path, content in files.items():
            (folder / path).write_bytes(content[:cut] if path == name else content)
        assert Service(folder).run() == done, cut  # a new model, which learns all of it again


@pytest.mark.parametrize("behind", [0, 1, 4])
def test_a_model_saved_earlier_learns_what_it_has_missed_and_no_more(tmp_path, behind):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=2, journal=journal)
    desk.issue(8)
    desk.label(*range(1, 9))
    desk.delayed.close()
    old = Recorder()
    old.n_rounds_ = 4 - behind
    scored = []
    DelayedLabels(old, task_rows=2, journal=journal, on_close=scored.append).close()
    assert old.taught == desk.model.taught[4 - behind :]
    assert list(map(content, scored)) == list(map(content, desk.tasks))


def test_rounds_learned_before_the_journal_began_are_not_its_own(tmp_path):
    journal = tmp_path / "events.sqlite"
    for _ in range(2):  # the second time from the journal
        model = Recorder()
        model.n_rounds_ = 10
        with DelayedLabels(model, task_rows=1, journal=journal) as delayed:
            if not delayed.tally.issued:
                delayed.issue([[1.0]])
                delayed.label(1, 0)
        assert (model.n_rounds_, len(model.taught)) == (11, 1)


def test_a_model_that_is_not_the_journals_is_refused(tmp_path):
    journal = tmp_path / "events.sqlite"
    model = Recorder()
    model.n_rounds_ = 5
    with DelayedLabels(model, task_rows=1, journal=journal) as delayed:
        delayed.issue([[1.0]])
        delayed.label(1, 0)
    before = stored(journal)
    for rounds in (4, 7):
        other = Recorder()
        other.n_rounds_ = rounds
        with pytest.raises(RunError, match="give the model that the journal was begun with"):
            DelayedLabels(other, task_rows=1, journal=journal)
        assert other.taught == []
    assert stored(journal) == before


def test_a_model_that_cannot_tell_its_rounds_must_be_told(tmp_path):
    journal = tmp_path / "events.sqlite"

    class Plain:
        def __init__(self):
            self.taught = []

        def predict(self, X):
            return [0] * len(X)

        def partial_fit(self, X, y):
            self.taught.append(X.tolist())

    with DelayedLabels(Plain(), task_rows=1, journal=journal) as delayed:
        delayed.issue([[1.0], [2.0]])
        delayed.label([1, 2], [0, 1])
    with pytest.raises(RunError, match="say how many"):
        DelayedLabels(Plain(), task_rows=1, journal=journal)
    model = Plain()
    DelayedLabels(model, task_rows=1, journal=journal, learned=1).close()
    assert model.taught == [[[2.0]]]


def test_settings_may_change_when_a_journal_is_gone_on_with(tmp_path):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=4, journal=journal)
    desk.issue(3)
    desk.delayed.close()
    other = Desk(task_rows=3, journal=journal)
    other.label(1, 2, 3)
    assert other.closed == [[1, 2, 3]]
    other.delayed.close()


def stored(path):
    """All that a journal holds, as SQL."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return list(opened.iterdump())


def test_a_journal_that_cannot_be_written_leaves_everything_as_it_was(tmp_path):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=2, journal=journal)
    desk.issue(2)
    before, held = stored(journal), desk.delayed.tally
    query = desk.delayed._tasks.query
    [(pages,)] = query("PRAGMA page_count")
    query(f"PRAGMA max_page_count={pages}")  # as on a full disk
    for attempt in (lambda: desk.issue(1000), lambda: desk.issue(2000)):
        with pytest.raises(RunError, match="make room on the disk"):
            attempt()
        assert stored(journal) == before
        assert desk.delayed.tally == held
    query("PRAGMA max_page_count=1000000")
    desk.label(1, 2)
    assert desk.closed == [[1, 2]]
    desk.delayed.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: b'{"event":"begun"}\n', "journal of an older version"),
        (lambda whole: b"name,age\n", "got another file"),
        (lambda whole: whole[:5000], "is damaged"),
        (lambda whole: whole[:4096] + bytes(len(whole) - 4096), "is damaged"),
        (lambda whole: whole[:60] + b"\0\0\0\x02" + whole[64:], "got schema 2"),
        (lambda whole: whole[:68] + b"\0\0\0\x02" + whole[72:], "got another database"),
    ],
)
def test_a_journal_that_is_not_ours_or_not_whole_is_refused_and_kept(tmp_path, damage, words):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=2, journal=journal)
    desk.issue(200)
    desk.label(1, 2)
    desk.delayed.close()
    damaged = damage(journal.read_bytes())
    journal.write_bytes(damaged)
    with pytest.raises(RunError, match=words):
        Desk(task_rows=2, journal=journal)
    assert journal.read_bytes() == damaged


def test_rows_leave_the_journal_when_they_are_old_and_learned_by_a_saved_model(tmp_path):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=2, journal=journal, retain_seconds=10)
    for at in (0, 1, 2):
        desk.issue(2, at=at)
        desk.label(2 * at + 1, 2 * at + 2)
    desk.clock.now = 12.5
    assert desk.delayed.compact(saved_rounds=2) == 4  # the third is old enough, but not saved
    desk.delayed.close()
    for rounds, words in ((1, "learned 2 to 3 rounds"), (2, None), (3, None)):
        model, tasks = Recorder(), []
        model.n_rounds_ = rounds
        reopened = {"task_rows": 2, "journal": journal, "on_close": tasks.append}
        if words:
            with pytest.raises(RunError, match=words):
                DelayedLabels(model, **reopened)
            continue
        with DelayedLabels(model, **reopened):
            assert [task.ids for task in tasks] == [[5, 6]]
            assert len(model.taught) == 3 - rounds


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(RunError, match="found a folder; name a file in it"):
        Desk(task_rows=2, journal=tmp_path)


def test_without_a_journal_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    desk = Desk(task_rows=1)
    desk.issue(2)
    desk.label(1)
    desk.delayed.close()
    assert list(tmp_path.iterdir()) == []


# Labels and groups that the model cannot learn from


class Graded(Recorder):
    """A recorder that knows its labels, as classifiers do, and refuses any other."""

    classes_ = np.array(["no", "yes"])

    def partial_fit(self, X, y, sensitive_features=None):
        if not set(y) <= {"no", "yes"}:
            raise ValueError(f"unseen labels in {y}")
        super().partial_fit(X, y, sensitive_features)


class Trusting(Recorder):
    """One that does not tell its labels, as if the journal were of an older version."""

    def partial_fit(self, X, y, sensitive_features=None):
        raise RuntimeError("killed before it learns")


@pytest.mark.parametrize("wrong", ["Yes", 1, True, ""])
def test_a_label_that_the_model_does_not_know_is_refused_and_nothing_is_taken(tmp_path, wrong):
    journal = tmp_path / "events.sqlite"
    with DelayedLabels(Graded(), task_rows=3, journal=journal) as delayed:
        delayed.issue([[1.0], [2.0], [3.0]])
        before = stored(journal)
        with pytest.raises(DataError, match=f"among 'no', 'yes', got {wrong!r} for id 1;"):
            delayed.label(1, wrong)
        with pytest.raises(DataError, match="got 'nein' for id 2; correct them: nothing"):
            delayed.label([1, 2], ["no", "nein"])
        assert stored(journal) == before
        delayed.label([1, 2, 3], ["yes", "no", "yes"])
        assert delayed.model.taught == [([1.0, 2.0, 3.0], ["yes", "no", "yes"], None)]


@pytest.mark.parametrize(
    ("labels", "rounds"), [(["Yes", "no", "yes"], [1, 2]), (["Yes"] * 3, [None, 1])]
)
def test_a_journal_with_a_wrong_label_is_gone_on_with_without_that_row(tmp_path, labels, rounds):
    journal = tmp_path / "events.sqlite"
    with DelayedLabels(Trusting(), task_rows=3, journal=journal) as delayed:
        delayed.issue([[1.0], [2.0], [3.0]])
        with pytest.raises(RuntimeError):
            delayed.label([1, 2, 3], labels)

    def opened(model, tasks):
        with pytest.warns(UserWarning, match='rows of task 1 are left out.*"Yes" for id 1'):
            return DelayedLabels(model, task_rows=3, journal=journal, on_close=tasks.append)

    model, tasks, again = Graded(), [], []
    with opened(model, tasks) as delayed:
        delayed.issue([[4.0], [5.0], [6.0]])
        delayed.label([4, 5, 6], ["no", "yes", "no"])
        assert delayed.tally.rounds == model.n_rounds_ == max(filter(None, rounds))
    assert tasks[0].y.tolist() == [label for label in labels if label != "Yes"]
    assert [task.round for task in tasks] == rounds
    taught = list(model.taught)
    opened(model, again).close()  # learns nothing twice
    assert model.taught == taught
    assert list(map(content, again)) == list(map(content, tasks))


def test_a_journal_of_other_labels_is_not_emptied_but_refused(tmp_path):
    journal = tmp_path / "events.sqlite"
    desk = Desk(task_rows=4, journal=journal)
    desk.issue(6)
    desk.label(1, 2, 3, 4, 5)
    desk.delayed.close()
    before = stored(journal)
    model = Graded()
    model.n_rounds_ = 0
    with pytest.raises(RunError, match="model of the journal, whose labels are 0, 1, got one of"):
        DelayedLabels(model, task_rows=4, journal=journal)
    assert stored(journal) == before


def test_groups_that_the_model_cannot_learn_from_are_refused_when_rows_are_issued(tmp_path):
    random = np.random.default_rng(0)
    X, sex = random.normal(size=(60, 2)), random.choice(["f", "m"], 60)
    model = FairGLCClassifier(model="logistic").partial_fit(X, X[:, 0] > 0, sensitive_features=sex)
    with DelayedLabels(model, task_rows=4, journal=tmp_path / "events.sqlite") as delayed:
        for groups, words in ((None, "in every call"), ({"a": sex[:4], "b": sex[:4]}, "got a, b")):
            with pytest.raises(DataError, match=words):
                delayed.issue(X[:4], sensitive_features=groups)
        assert delayed.tally.issued == 0
        ids = delayed.issue(X[:4], sensitive_features=sex[:4]).ids
        delayed.label(ids, X[:4, 0] > 0)
    assert model.n_rounds_ == 2


# Rows of any form


FRAME = pd.DataFrame({"merit": [0.1, np.nan, 1e-300], "kind": ["a", "b", "ü"], "age": [30, 40, 50]})


@pytest.mark.parametrize(
    "values",
    [
        FRAME,
        FRAME["kind"],
        {"sex": ["f", "m", "f"], "age": [1, 2, 3]},
        np.array([[0.1, np.nan], [1 / 3, 2.0], [np.pi, -0.0]]),
        np.array([["a", "b"], ["c", "d"], ["e", None]], dtype=object),
        np.array([True, False, True]),
        np.arange(3),
    ],
    ids=lambda values: type(values).__name__,
)
def test_rows_survive_a_journal_to_the_last_digit_and_in_their_form(values):
    layout, rows = to_rows(values)
    assert len(rows) == 3
    layout_again, rows_again = json.loads(json.dumps([layout, rows], allow_nan=False))
    back = from_rows(layout_again, rows_again)
    assert type(back) is type(values)
    if isinstance(values, pd.DataFrame):
        pd.testing.assert_frame_equal(back, values)
    elif isinstance(values, pd.Series):
        pd.testing.assert_series_equal(back, values)
    else:
        np.testing.assert_equal(back, values)


def test_single_precision_numbers_come_back_equal():
    values = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    layout, rows = to_rows(values)
    back = from_rows(layout, json.loads(json.dumps(rows)))
    np.testing.assert_array_equal(back.astype(np.float32), values)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"X": [[1.0]], "ids": ["a", "b"]}, "got 1 rows, 2 ids"),
        ({"X": [[1.0]], "ids": ["old"]}, "ids that are not in use, got 'old'"),
        ({"X": [[1.0], [2.0]], "ids": ["a", "a"]}, "an id of its own"),
        ({"X": [[1.0]], "ids": [1.5]}, "ids that are numbers or words, got 1.5"),
        ({"X": [[1.0]], "ids": [True]}, "ids that are numbers or words, got True"),
        ({"X": [[1.0]], "sensitive_features": ["f", "m"]}, "sensitive features for 2"),
        ({"X": [[1.0]], "sensitive_features": None}, "as in the first call"),
        ({"X": pd.DataFrame({"x": [1.0]})}, "as in the first call"),
        ({"X": [[np.inf]]}, "got infinity"),
        ({"X": [[1.0]] * 9}, "at most max_rows=8 rows"),
        ({"X": np.zeros((1, 1, 1))}, r"got shape \(1, 1, 1\)"),
    ],
)
def test_rows_that_cannot_be_issued_are_refused_in_words_and_leave_no_trace(call, words, tmp_path):
    journal = tmp_path / "events.sqlite"
    with DelayedLabels(Recorder(), task_rows=4, max_rows=8, journal=journal) as delayed:
        delayed.issue([[0.0]], sensitive_features=["f"], ids=["old"])
        before = stored(journal)
        groups = {"sensitive_features": ["f"] * len(call["X"])}
        with pytest.raises(DataError, match=words):
            delayed.issue(**{**groups, **call})
        assert stored(journal) == before
        assert delayed.waiting == ["old"]


@pytest.mark.parametrize(
    ("ids", "y"), [([1, 2], [1]), ([1], [None]), ([1], [np.nan]), (1, None)], ids=str
)
def test_every_id_needs_its_label(ids, y):
    desk = Desk(task_rows=2)
    desk.issue(2)
    with pytest.raises(DataError, match="expected a label for each of"):
        desk.delayed.label(ids, y)
    assert desk.delayed.waiting == [1, 2]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "expected task_rows or task_seconds"),
        ({"task_rows": 0}, "task_rows of at least 1, got 0"),
        ({"task_seconds": -1}, "task_seconds of at least 0, got -1"),
        ({"task_rows": 1, "wait_seconds": float("nan")}, "wait_seconds of at least 0, got nan"),
        ({"task_rows": 10, "max_rows": 9}, "max_rows of at least 10, got 9"),
        ({"task_rows": 1, "late": "later"}, "late='next' or 'drop', got 'later'"),
        ({"task_rows": 1, "unknown": "ignore"}, "unknown='raise' or 'count', got 'ignore'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        DelayedLabels(Recorder(), **settings)


# With the classifier


def test_the_classifier_with_delayed_labels_killed_and_restarted_is_the_one_never_stopped(tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 2)), columns=["merit", "noise"])
    y = np.where(X["merit"] > 0, "yes", "no")
    sex = pd.Series(random.choice(["f", "m"], 80), name="sex")

    def rows(begin, end):
        return X.iloc[begin:end], y[begin:end], sex.iloc[begin:end]

    def begun():
        features, labels, groups = rows(0, 20)
        settings = {"model": "logistic", "capacity": 16, "support": 4, "meta_iterations": 2}
        model = FairGLCClassifier(**settings, random_state=0)
        return model.partial_fit(features, labels, sensitive_features=groups)

    def play(delayed, begin, end):
        features, labels, groups = rows(begin, end)
        ids, prediction, probability = delayed.issue(features, sensitive_features=groups)
        delayed.label(ids[::-1], labels[::-1])
        return prediction.tolist(), probability

    whole = DelayedLabels(begun(), task_rows=20)
    expected = [play(whole, 20, 50), play(whole, 50, 80)]

    journal, saved = tmp_path / "events.sqlite", tmp_path / "model"
    model = begun()
    with DelayedLabels(model, task_rows=20, journal=journal) as delayed:
        model.save(saved)  # before the first task of the journal
        found = [play(delayed, 20, 50)]
    model = FairGLCClassifier.load(saved)
    with DelayedLabels(model, task_rows=20, journal=journal) as delayed:
        assert model.n_rounds_ == 2
        found.append(play(delayed, 50, 80))
    for (ours, probability), (theirs, expected_probability) in zip(found, expected, strict=True):
        assert ours == theirs
        np.testing.assert_array_equal(probability, expected_probability)
    assert model.n_rounds_ == whole.model.n_rounds_ == 4


def test_the_example_goes_on_from_its_journal(capsys):
    example = Path(__file__).parent.parent / "examples" / "delayed_labels.py"
    runpy.run_path(str(example), run_name="__main__")
    first, half, _, second, end, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("started with 1 rounds, 0 labels")
    assert second.startswith("started with 3 rounds")
    assert "issued=300" in half
    assert "issued=600" in end


def test_a_file_of_one_byte_is_no_journal_and_is_kept(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"x")
    with pytest.raises(RunError, match="another file"):
        DelayedLabels(Recorder(), task_rows=2, journal=path)
    assert path.read_bytes() == b"x"


def test_another_model_in_its_place_predicts_and_learns():
    desk, other = DelayedLabels(Recorder(), task_rows=2), Recorder()
    desk.model = other
    desk.label(desk.issue([[0.0], [1.0]]).ids, [0, 1])
    assert other.n_rounds_ == 1
