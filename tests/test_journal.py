"""The journal survives a kill at any byte, and says so when anything else has happened to it."""

import json

import pytest

from fairsaoml.core.errors import RunError
from fairsaoml.runs.journal import Journal, read_rounds, whole_rounds

SEEDS = (0, 1)


def lines_of(round):
    return [{"round": round, "seed": seed, "accuracy": 0.1 * round} for seed in SEEDS]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rounds.jsonl"
    with Journal(path) as journal:
        for round in (1, 2, 3):
            journal.append(lines_of(round))
        journal.sync()
    return path


def rounds(path):
    return [(record["round"], record["seed"]) for record in read_rounds(path)]


ALL = [(round, seed) for round in (1, 2, 3) for seed in SEEDS]


def test_a_journal_has_one_line_for_each_round_and_seed(path):
    assert rounds(path) == ALL
    assert [json.loads(line) for line in path.read_text().splitlines()] == read_rounds(path)


def test_lines_are_there_as_soon_as_they_are_written(tmp_path):
    path = tmp_path / "rounds.jsonl"
    with Journal(path) as journal:
        journal.append(lines_of(1))
        assert rounds(path) == ALL[:2]


def test_a_journal_cut_at_any_byte_keeps_its_whole_lines(path):
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        assert rounds(path) == ALL[: sum(end <= cut for end in ends)]


def test_a_torn_last_line_is_cut_off_when_the_journal_is_gone_on_with(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with Journal(path, after=3) as journal:
        journal.append(lines_of(4))
    assert rounds(path) == [*ALL[:-1], (4, 0), (4, 1)]


def test_what_was_written_after_the_checkpoints_round_is_cut_and_written_again(path):
    whole = path.read_bytes()
    with Journal(path, after=1) as journal:
        assert rounds(path) == ALL[:2]
        for round in (2, 3):
            journal.append(lines_of(round))
    assert path.read_bytes() == whole


def test_a_new_journal_starts_empty(path):
    with Journal(path):
        assert path.read_bytes() == b""


@pytest.mark.parametrize("damage", [b"{", b"", b"null garbage", b"\xff\xfe"])
def test_a_damaged_line_in_the_middle_is_an_error_that_says_which(path, damage):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = damage + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(RunError, match=r"line 3 of .* is damaged; .*--force"):
        read_rounds(path)
    with pytest.raises(RunError, match="line 3"):
        Journal(path, after=3)
    assert path.read_bytes() == b"".join(lines)  # nothing was thrown away


def test_damage_after_the_checkpoints_round_is_cut_and_written_again(path):
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"{\n", *lines[3:]]))
    assert whole_rounds(path, len(SEEDS)) == 1
    with Journal(path, after=1) as journal:
        for round in (2, 3):
            journal.append(lines_of(round))
    assert path.read_bytes() == whole


def test_nan_never_gets_into_a_journal(path):
    with Journal(path, after=3) as journal:
        journal.append([{"round": 4, "seed": 0, "loss": float("nan"), "dual": [float("inf")]}])
    assert read_rounds(path)[-1] == {"round": 4, "seed": 0, "loss": None, "dual": [None]}
    assert "NaN" not in path.read_text()


def test_a_missing_journal_is_an_error(tmp_path):
    with pytest.raises(RunError, match=r"expected a run's journal at rounds.jsonl"):
        read_rounds(tmp_path / "rounds.jsonl")


def test_a_line_of_no_round_is_a_damaged_one(tmp_path):
    """Before any checkpoint all that a journal holds is written again: nothing is kept."""
    path = tmp_path / "rounds.jsonl"
    for round in (0, -1, True, "1", None):
        path.write_text(f'{{"round": {json.dumps(round)}}}\n{{"round": 2}}\n')
        with pytest.raises(RunError, match="line 1"):
            read_rounds(path)
        with Journal(path):
            assert path.read_bytes() == b""
