"""A run that dies at any moment, or finds its disk full, ends up as if nothing had happened.

The game is played once; then its rounds are handed out again, so that what is at test is the disk.
At every call that changes a file in turn the process dies, or the disk is full. The same with real
processes, real kills and a real disk: `tests/kill.py`, here in its quick form.
"""

import errno
import os
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import kill as killing
import tiny
from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.runs import runner, saved
from fairsaoml.runs.journal import Journal, whole_rounds
from fairsaoml.runs.runner import resume, run
from fairsaoml.runs.spec import Setup

ROUNDS = 4
KEPT = ("spec.json", "rounds.jsonl", "summary.json")  # what must be the same, byte by byte


class Killed(BaseException):
    """What nobody catches."""


@pytest.fixture(scope="module")
def played():
    """A game and its first rounds, as they were once played."""
    game = Setup.of(tiny.spec())
    rounds = []
    for one in prequential(game.stream, game.learner, game.problem, tiny.SEEDS):
        rounds.append(one._replace(state=jax.device_get(one.state)))
        if one.round == ROUNDS:
            break
    return replace(game, stream=replace(game.stream, length=ROUNDS)), rounds


@pytest.fixture
def begun_after(played, monkeypatch):
    """Let every run be that game again; from which rounds on it was gone on with."""
    game, rounds = played
    begun = []

    def again(stream, learner, problem, seeds, *, state, after, before):
        begun.append(after)
        if after:  # bit by bit the state that was reached then
            leaves = zip(*map(jax.tree.leaves, (state, rounds[after - 1].state)), strict=True)
            assert all(np.array_equal(one, other) for one, other in leaves)
        yield from rounds[after:]

    monkeypatch.setattr(runner, "prequential", again)
    for module in (runner, saved):
        monkeypatch.setattr(module, "Setup", SimpleNamespace(of=lambda spec, *_, **__: game))
    monkeypatch.setattr(saved, "first_states", lambda learner, keys: rounds[0].state)
    monkeypatch.setenv(runner.INTERVAL, "0")
    return begun


def go_on(folder, **options):
    """What a person does: resume what has a spec, start anew what has none."""
    if (folder / "spec.json").exists():
        return resume(folder, **options)
    return run(tiny.spec(), folder, **options)


def content(folder):
    return {name: (folder / name).read_bytes() for name in KEPT}


@pytest.fixture
def untouched(begun_after, tmp_path):
    """What a run leaves that nothing happens to."""
    run(tiny.spec(), tmp_path / "untouched")
    begun_after.clear()
    return content(tmp_path / "untouched")


class Disk:
    """Everything that changes a file in a folder, counted; at a count it goes wrong.

    `dies`: the process is gone, and nothing it would still do is done. `full`: no file can grow any
    more. A write goes wrong halfway.
    """

    GROW = ("open", "write", "fsync", "mkdir")

    def __init__(self, monkeypatch, folder):
        self.folder, self.calls, self.at, self.wrong = str(folder), 0, None, None
        self._descriptors = set()
        for name in ("open", "write", "fsync", "ftruncate", "replace", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))
        monkeypatch.setattr(os, "close", self._closing(os.close))

    def goes_wrong(self, at, wrong):
        self.calls, self.at, self.wrong = 0, at, wrong

    def is_well(self):
        self.calls, self.at = 0, None

    def _watched(self, name, real):
        def call(target, *rest, **options):
            reads = name == "open" and not rest[0] & (os.O_WRONLY | os.O_RDWR)
            if (reads and not os.path.isdir(target)) or not self._is_ours(target):
                return real(target, *rest, **options)
            self.calls += 1
            if self.at is not None and self.calls >= self.at:
                first_half = name == "write" and self.calls == self.at
                if first_half:
                    written = real(target, rest[0][: len(rest[0]) // 2])
                if self.wrong == "dies":
                    raise Killed
                if first_half:
                    return written
                if name in self.GROW:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if name == "fsync":
                return None  # no power fails here, and a thousand of them take their time
            done = real(target, *rest, **options)
            if name == "open":
                self._descriptors.add(done)
            return done

        return call

    def _closing(self, real):
        def close(descriptor):
            self._descriptors.discard(descriptor)
            real(descriptor)

        return close

    def _is_ours(self, target):
        if isinstance(target, int):
            return target in self._descriptors
        return str(target).startswith(self.folder)


@pytest.fixture
def disk(monkeypatch, tmp_path):
    return Disk(monkeypatch, tmp_path / "run")


def calls_of_a_run(disk, folder):
    """How many calls change files while a run is played: places where it can go wrong."""
    folder.mkdir()
    disk.is_well()
    run(tiny.spec(), folder / "counted")
    return disk.calls


def watch(seen):
    return lambda game, played: seen.append(played.round)


def test_a_run_that_dies_at_any_call_that_changes_a_file_is_gone_on_with_as_if_it_had_not(
    disk, begun_after, untouched, tmp_path
):
    calls = calls_of_a_run(disk, tmp_path / "run")
    assert calls > 20 * ROUNDS
    for at in range(1, calls + 1):
        folder, seen = tmp_path / "run" / str(at), []
        disk.goes_wrong(at, "dies")
        with pytest.raises(Killed):
            run(tiny.spec(), folder, on_round=watch(seen))
        disk.is_well()
        begun_after.clear()
        go_on(folder)
        assert content(folder) == untouched, f"died at call {at} of {calls}"
        # A round is shown before it is saved: all that were shown before it had been.
        assert not begun_after or begun_after[0] >= len(seen) - 1, f"at call {at} of {calls}"
        assert not list(folder.rglob(".*.part"))


def test_a_run_may_die_again_and_again(disk, untouched, tmp_path):
    chance = random.Random(0)
    for attempt in range(30):
        folder, deaths = tmp_path / "run" / str(attempt), 0
        while not (folder / "summary.json").exists():
            disk.goes_wrong(chance.randrange(1, 60), "dies")
            try:
                go_on(folder)
            except Killed:
                deaths += 1
            disk.is_well()
        assert deaths
        assert content(folder) == untouched


def test_a_disk_that_is_full_at_any_call_is_a_clear_error_and_costs_nothing(
    disk, begun_after, untouched, tmp_path
):
    calls = calls_of_a_run(disk, tmp_path / "run")
    for at in range(1, calls + 1):
        folder, seen = tmp_path / "run" / str(at), []
        disk.goes_wrong(at, "full")
        with pytest.raises(RunError, match=r"expected to write .* No space left on device") as said:
            run(tiny.spec(), folder, on_round=watch(seen))
        if (folder / "spec.json").exists():
            assert f"continue with `fairsaoml run --resume {folder}`" in str(said.value)
        else:
            assert "nothing was run yet: fix that, then start again" in str(said.value)
        disk.is_well()
        begun_after.clear()
        go_on(folder)
        assert content(folder) == untouched, f"full at call {at} of {calls}"
        assert not begun_after or begun_after[0] >= len(seen) - 1, f"at call {at} of {calls}"


def test_on_a_small_disk_that_is_full_again_and_again_nothing_is_lost(untouched, tmp_path):
    try:
        with killing.small_disk(tmp_path / "disk") as disk:
            said = []
            for room in range(0, 60_000, 2_000):
                killing.leave_room(disk, room)
                try:
                    go_on(disk / "run")
                except RunError as error:
                    said.append(str(error))
            assert len(said) > 10
            assert all("got: No space left on device" in words for words in said)
            killing.leave_room(disk, killing.DISK)
            go_on(disk / "run")
            assert content(disk / "run") == untouched
    except PermissionError as reason:
        pytest.skip(f"no disk may be mounted here: {reason}")


def lose_lines(folder, lines):
    path = folder / "rounds.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def tear_the_last_line(folder):
    os.truncate(folder / "rounds.jsonl", (folder / "rounds.jsonl").stat().st_size - 9)


@pytest.mark.parametrize(
    ("damage", "after"),
    [
        (tear_the_last_line, 2),
        (lambda folder: lose_lines(folder, 1), 2),
        (lambda folder: lose_lines(folder, 2), 2),
        (lambda folder: lose_lines(folder, 3), 0),
        (lambda folder: (folder / "rounds.jsonl").unlink(), 0),
    ],
)
def test_rounds_that_were_saved_and_then_lost_from_the_journal_are_played_again(
    begun_after, untouched, tmp_path, damage, after
):
    def interrupt(game, played):
        if played.round == 4:
            raise Killed

    with pytest.raises(Killed):  # rounds 2 and 3 are saved, 4 is not
        run(tiny.spec(), tmp_path / "run", on_round=interrupt)
    lose_lines(tmp_path / "run", len(tiny.SEEDS))
    damage(tmp_path / "run")
    begun_after.clear()
    with pytest.warns(UserWarning, match=rf"hold the 3 rounds .* continuing after round {after}"):
        resume(tmp_path / "run")
    assert begun_after == [after]
    assert content(tmp_path / "run") == untouched


def test_everything_is_flushed_before_it_counts(begun_after, monkeypatch, tmp_path):
    """Power may fail, too: a file before its name, its name after; the journal before all."""
    done, names = [], {}

    def noted(name, real):
        def call(target, *rest, **options):
            path = names.get(target, target) if isinstance(target, int) else Path(target)
            result = real(target, *rest, **options)
            if name == "open":
                names[result] = path
            elif isinstance(path, Path) and path.is_relative_to(tmp_path):
                done.append((name, (Path(rest[0]) if name == "replace" else path).name))
            return result

        return call

    for name in ("open", "write", "fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    run(tiny.spec(), tmp_path / "run")
    saving = done.index(("fsync", "rounds.jsonl"))
    state, manifest = "state-00000001.safetensors", "manifest.json"
    assert done[saving : saving + 10] == [
        ("fsync", "rounds.jsonl"),
        ("fsync", "run"),  # the folder `checkpoint` is new
        *[(call, f".{state}.part") for call in ("write", "fsync")],
        *[("replace", state), ("fsync", "checkpoint")],
        *[(call, f".{manifest}.part") for call in ("write", "fsync")],
        *[("replace", manifest), ("fsync", "checkpoint")],
    ]


def test_a_run_that_is_being_played_cannot_be_resumed_by_another(begun_after, tmp_path):
    def meddle(game, played):
        with pytest.raises(RunError, match="another process is working in"):
            resume(tmp_path / "run")

    run(tiny.spec(), tmp_path / "run", on_round=meddle)


def test_rounds_are_whole_when_every_seed_has_its_line(tmp_path):
    path = tmp_path / "rounds.jsonl"
    assert whole_rounds(path, seeds=2) == 0
    with Journal(path) as journal:
        for round in (1, 2):
            journal.append([{"round": round, "seed": seed} for seed in (0, 1)])
        journal.append([{"round": 3, "seed": 0}])
        assert whole_rounds(path, seeds=2) == 2
        journal.append([{"round": 5, "seed": 0}, {"round": 5, "seed": 1}])  # where is 4?
        assert whole_rounds(path, seeds=2) == 2


@pytest.mark.parametrize("seconds", ["often", "-1", "nan"])
def test_a_time_between_checkpoints_that_is_none_is_an_error(
    begun_after, tmp_path, monkeypatch, seconds
):
    monkeypatch.setenv(runner.INTERVAL, seconds)
    with pytest.raises(ConfigError, match=r"must be a number of seconds >= 0; got"):
        run(tiny.spec(), tmp_path / "run")


# Real processes


@tiny.one_learner
def test_a_process_killed_at_random_moments_leaves_the_run_that_one_never_killed_does(
    finished, learner, tmp_path
):
    tasks = tiny.STREAM["tasks"]
    pace = killing.paced(learner, tasks, tmp_path / "paced")
    whole = tmp_path / "whole"
    whole.mkdir()
    for path in finished.iterdir():
        (whole / path.name).symlink_to(path)
    (whole / "report.html").write_text("")  # the command writes one, too
    case = killing.Case(learner, tasks, whole, pace)
    hits, _ = killing.kill_often([case], tmp_path, kills=3, chance=random.Random(5))
    assert hits.total() == 3
