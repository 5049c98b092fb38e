"""Nothing after round t changes anything at or before t (D1), seen from a run's files."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tiny
from fairsaoml.runs import spec as spec_module
from fairsaoml.runs.runner import run

UNTIL = 10  # in the midst of intervals: level 2 is at [9, 12], level 3 at [9, 16]


def other_future(number, task):
    """The round after has other labels and groups, all later ones other features too."""
    if number <= UNTIL:
        return task
    changed = task._replace(y=1 - task.y, group=1 - task.group)
    return changed if number == UNTIL + 1 else changed._replace(x=3 - 2 * task.x)


@pytest.fixture(scope="module")
def other(learner, tmp_path_factory):
    """The tiny run in another future: same shapes, other values."""
    folder = tmp_path_factory.mktemp("other") / learner
    original = spec_module.open_stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            spec_module,
            "open_stream",
            lambda name, settings: tiny.perturbed(original(name, settings), other_future),
        )
        run(tiny.spec(learner), folder, save_predictions=True)
    return folder


def test_the_future_changes_no_byte_of_the_past(finished, other):
    ours, theirs = tiny.lines(finished), tiny.lines(other)
    past = UNTIL * len(tiny.SEEDS)
    assert ours[:past] == theirs[:past]
    changed = zip(ours[past:], theirs[past:], strict=True)
    assert all(one != another for one, another in changed)  # or the test could not tell


def scores(folder, expression):
    return pq.read_table(folder / "predictions.parquet", filters=expression)["score"]


def test_the_future_changes_no_score_of_the_past(finished, other):
    past = pc.field("round") <= UNTIL
    assert scores(finished, past).equals(scores(other, past))


def test_a_rounds_own_labels_and_groups_change_no_score_of_it(finished, other):
    # Zero-shot: the next round has the same features but other labels and groups (D18).
    here = pc.field("round") == UNTIL + 1
    assert scores(finished, here).equals(scores(other, here))
    later = pc.field("round") == UNTIL + 2
    assert not scores(finished, later).equals(scores(other, later))
