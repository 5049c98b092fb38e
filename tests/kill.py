"""Runs that are killed with SIGKILL at random moments and gone on with, until they are finished.

`python -m tests.kill --kills 200` kills so many times. However often a run was killed, its journal
ends up as that of one never touched, times apart; and at no moment does it hold a round twice, or
one too few. Now and then the journal's last line is torn as well; and on a small disk (where one
may be mounted) runs fill it up, again and again.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import tiny

COMMAND = [sys.executable, "-c", "from fairsaoml.cli import main; main()"]
TASKS = 25  # of each of the three domains
# Seconds between checkpoints, drawn for each process: every round, now and then, at the end only.
INTERVALS = ("0", "0.03", "1000")
# Most of a process is start-up; where it may be killed, and how often: (kind, weight).
MOMENTS = {"any": 3, "playing": 6, "ending": 1}
TORN = 0.2  # of the kills also tear the last line
PATIENCE = 300.0  # seconds after which a process is not slow but stuck
DISK = 1024 * 1024  # bytes of the small disk
ROOM = 60_000  # at most so many of them are free at a time: some rounds
SECONDS = re.compile(rb',"seconds":[^,}]*}$')


class Pace(NamedTuple):
    """When an undisturbed process has journalled its first round, its last, and ended: seconds."""

    first: float
    last: float
    end: float


class Case(NamedTuple):
    """A run as it should be."""

    learner: str
    tasks: int
    folder: Path
    pace: Pace

    @property
    def lines(self) -> int:
        """Of a whole journal."""
        return journal_lines(self.tasks)


# One process


def start(folder: Path, learner: str, tasks: int, interval: str) -> subprocess.Popen:
    """A process that starts the run in a folder, or goes on with it."""
    # Of any length, in the program that the tests have compiled.
    known = tiny.accepted(learner, {"horizon": tiny.ROUNDS})
    options = tiny.options(learner, tasks=tasks, **known)
    begin = ["run", *options, "--save-predictions", "--out", str(folder)]
    words = ["run", "--resume", str(folder)] if (folder / "spec.json").exists() else begin
    return subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FAIRSAOML_CHECKPOINT_SECONDS": interval},
    )


def wait_until(process: subprocess.Popen, holds: Callable[[], bool]) -> float:
    """The moment when something holds, or the process has ended."""
    begun = time.monotonic()
    while not holds() and process.poll() is None:
        if time.monotonic() - begun > PATIENCE:
            process.kill()
            raise TimeoutError(f"nothing came in {PATIENCE:g} s")
        time.sleep(0.0005)
    return time.monotonic()


def undisturbed(learner: str, tasks: int, folder: Path) -> Case:
    """A run as it should be. The first of two compiles, the second one's pace counts."""
    paced(learner, tasks, folder / "cold")
    pace = paced(learner, tasks, folder / "warm")
    return Case(learner, tasks, folder / "warm", pace)


def paced(learner: str, tasks: int, folder: Path) -> Pace:
    """Play a run, and see how long it takes."""
    begun = time.monotonic()
    with start(folder, learner, tasks, "0") as process:
        first = wait_until(process, lambda: len(whole_lines(folder)) > 0)
        last = wait_until(process, lambda: len(whole_lines(folder)) == journal_lines(tasks))
        error = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, error
    return Pace(first - begun, last - begun, time.monotonic() - begun)


# What is on the disk


def journal_lines(tasks: int) -> int:
    """How many lines a whole journal has: three domains, every seed."""
    return 3 * tasks * len(tiny.SEEDS)


def journal(folder: Path) -> bytes:
    """The bytes of a journal; none where there is none yet."""
    path = folder / "rounds.jsonl"
    return path.read_bytes() if path.exists() else b""


def whole_lines(folder: Path) -> list[bytes]:
    """A journal's whole lines, without their times."""
    return [SECONDS.sub(b"", line) for line in journal(folder).split(b"\n")[:-1]]


def saved(folder: Path) -> int:
    """The round of the newest checkpoint."""
    path = folder / "checkpoint" / "manifest.json"
    return json.loads(path.read_text())["round"] if path.exists() else 0


def what_is_left(folder: Path, case: Case) -> str:
    """What lies on the disk after a kill; a torn line may be an earlier one's."""
    if not (folder / "spec.json").exists():
        return "before the spec was written"
    if (folder / "summary.json").exists():
        return "with all but the report written"
    if any(folder.rglob(".*.part")):
        return "while a file was written"
    lines = journal(folder)
    if lines and not lines.endswith(b"\n"):
        return "while a line was written"
    if not lines:
        return "before the first round"
    if lines.count(b"\n") == case.lines:
        return "after the last round"
    ahead = lines.count(b"\n") > saved(folder) * len(tiny.SEEDS)
    return "with rounds that were not saved" if ahead else "with all rounds saved"


def tear(folder: Path, chance: random.Random) -> None:
    """Cut the journal somewhere in its last line."""
    content = journal(folder)
    begin = content.rstrip(b"\n").rfind(b"\n") + 1
    if content:
        os.truncate(folder / "rounds.jsonl", chance.randrange(begin, len(content)))


def is_sound(folder: Path) -> bool:
    """Whether the journal has all rounds of the checkpoint: a torn line may cost one."""
    return len(whole_lines(folder)) >= saved(folder) * len(tiny.SEEDS)


def require_a_beginning(folder: Path, case: Case) -> None:
    """What is journalled is what should be, from the first round on: none lost, none doubled."""
    lines = whole_lines(folder)
    assert lines == whole_lines(case.folder)[: len(lines)], folder


def require_the_same(folder: Path, case: Case) -> None:
    """A finished run is the run as it should be, and nothing lies about."""
    import pyarrow.parquet as pq

    assert whole_lines(folder) == whole_lines(case.folder), folder
    assert journal(folder).count(b"\n") == case.lines, folder
    assert (folder / "summary.json").read_bytes() == (case.folder / "summary.json").read_bytes()
    ours, theirs = (pq.read_table(one / "predictions.parquet") for one in (folder, case.folder))
    assert ours.equals(theirs), folder
    left, expected = ({path.name for path in one.iterdir()} for one in (folder, case.folder))
    assert left == expected, left ^ expected
    assert not list(folder.rglob(".*.part")), folder


# Killed


def wait_for_a_moment(
    folder: Path, process: subprocess.Popen, case: Case, chance: random.Random
) -> None:
    """Let a process go on until the moment it shall be killed at."""
    path = folder / "rounds.jsonl"
    touched = path.stat().st_mtime_ns if path.exists() else None
    kind = chance.choices(list(MOMENTS), list(MOMENTS.values()))[0]
    rounds = chance.randrange(1, 8)
    if kind == "any":
        time.sleep(chance.uniform(0, case.pace.end))
        return
    # What was not saved is cut first: only then does the journal grow.
    wait_until(process, lambda: path.exists() and path.stat().st_mtime_ns != touched)
    if kind == "playing":
        lines = min(len(whole_lines(folder)) + rounds * len(tiny.SEEDS), case.lines)
        wait_until(process, lambda: len(whole_lines(folder)) >= lines)
        a_round = (case.pace.last - case.pace.first) / (3 * case.tasks)
        time.sleep(chance.uniform(0, 2 * a_round))
    else:
        wait_until(process, lambda: len(whole_lines(folder)) == case.lines)
        time.sleep(chance.uniform(0, case.pace.end - case.pace.last))


def kill(case: Case, folder: Path, kills: int, chance: random.Random) -> Counter[str]:
    """Kill a run and go on with it, at most so often, until it ends. Where the kills have hit."""
    hits: Counter[str] = Counter()
    while True:
        was_sound, before = is_sound(folder), saved(folder)
        with start(folder, case.learner, case.tasks, chance.choice(INTERVALS)) as process:
            if hits.total() < kills:
                wait_for_a_moment(folder, process, case, chance)
                process.send_signal(SIGKILL)
            error = process.communicate(timeout=PATIENCE)[1]
        if process.returncode == 0:
            require_the_same(folder, case)
            return hits
        assert process.returncode == -SIGKILL, error
        assert "Traceback" not in error, error
        require_a_beginning(folder, case)
        if was_sound:
            assert is_sound(folder), f"{folder}: a round was saved and not journalled"
            assert saved(folder) >= before, f"{folder}: round {before} was saved and is lost"
        hits[what_is_left(folder, case)] += 1
        # A summary is written when the journal is on the disk to its end: no kill tears that.
        if not (folder / "summary.json").exists() and chance.random() < TORN:
            tear(folder, chance)


def kill_often(
    cases: list[Case], scratch: Path, kills: int, chance: random.Random
) -> tuple[Counter[str], int]:
    """Kill so often, run after run: one may end before the moment it was to be killed at."""
    hits: Counter[str] = Counter()
    runs = 0
    while hits.total() < kills:
        case = cases[runs % len(cases)]
        most = min(kills - hits.total(), chance.randrange(1, 30))
        found = kill(case, scratch / f"run-{runs}", most, chance)
        hits += found
        runs += 1
        print(f"{case.learner}: killed {found.total()} times, the same", flush=True)
    return hits, runs


def kill_learn(scratch: Path, kills: int, chance: random.Random) -> Counter[str]:
    """Kill `learn` and `learn --undo` so often; each ends as one that was never killed."""
    header = "pay,sex,hired\n"
    rows = [
        f"{chance.gauss(0, 1):.3f},{chance.choice('fm')},{chance.choice(['yes', 'no'])}\n"
        for _ in range(360)
    ]
    scratch.mkdir()
    (scratch / "old.csv").write_text(header + "".join(rows[:180]))
    (scratch / "new.csv").write_text(header + "".join(rows[180:]))
    (scratch / "all.csv").write_text(header + "".join(rows))
    roles = ["--label", "hired", "--sensitive", "sex", "--rows", "60", "--learner", "fair-glc"]

    def command(*words: str) -> subprocess.Popen:
        environment = {**os.environ, "FAIRSAOML_CHECKPOINT_SECONDS": "0"}
        return subprocess.Popen(
            [*COMMAND, *words, "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    for name in ("old", "all"):
        with command(
            "run", str(scratch / f"{name}.csv"), *roles, "--out", str(scratch / name)
        ) as process:
            assert process.wait(PATIENCE) == 0, process.communicate()[1]
    before, after = (whole_lines(scratch / name) for name in ("old", "all"))
    hits: Counter[str] = Counter()
    folder, pace = scratch / "run", 0.0
    shutil.copytree(scratch / "old", folder)
    while hits.total() < kills:
        for words, expected in ((str(scratch / "new.csv"), after), ("--undo", before)):
            if words == "--undo" and whole_lines(folder) == before:
                continue  # it was taken back before it was killed
            begun = time.monotonic()
            with command("learn", str(folder), words) as process:
                if pace and hits.total() < kills and chance.random() < 0.7:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(chance.uniform(0.3, 1.0) * pace)
                    process.send_signal(SIGKILL)
                error = process.communicate(timeout=PATIENCE)[1]
            assert "Traceback" not in error, error
            lines = whole_lines(folder)
            assert lines == after[: len(lines)], folder
            if process.returncode == 0:
                pace = pace or time.monotonic() - begun
                assert lines == expected, (words, len(lines))
            else:
                assert process.returncode == -SIGKILL, error
                hits["undoing" if words == "--undo" else "learning"] += 1
    # Whatever state it is in: learned once more, or finished, it has every row once.
    with command("learn", str(folder), str(scratch / "new.csv")) as process:
        assert process.wait(PATIENCE) == 0, process.communicate()[1]
    assert whole_lines(folder) == after
    return hits


# On a full disk


@contextmanager
def small_disk(folder: Path, size: int = DISK) -> Iterator[Path]:
    """A disk of so many bytes; `PermissionError` where none may be mounted."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        raise PermissionError("no command `mount` here") from None
    if done.returncode:
        raise PermissionError(done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def leave_room(disk: Path, room: int) -> None:
    """Fill a disk up to so many free bytes, or set them free."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    found = os.statvfs(disk)
    free = found.f_bavail * found.f_frsize
    filler.write_bytes(bytes(max(0, free - room)))


def fill(case: Case, disk: Path, times: int, chance: random.Random) -> Counter[str]:
    """Let a run fill its disk so often, each time with a little more room; then let it end."""
    said: Counter[str] = Counter()
    folder = disk / "run"
    for attempt in range(times + 1):
        leave_room(disk, DISK if attempt == times else chance.randrange(ROOM))
        with start(folder, case.learner, case.tasks, "0") as process:
            error = process.communicate(timeout=PATIENCE)[1]
        assert "Traceback" not in error, error
        if process.returncode == 0:
            break
        assert process.returncode == 1, error
        assert "No space left on device" in error, error
        said[what_is_left(folder, case)] += 1
        require_a_beginning(folder, case)
    assert process.returncode == 0, error
    require_the_same(folder, case)
    return said


def main() -> None:
    """Kill as often as asked, then fill disks; say what was hit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--learn-kills", type=int, default=40)
    parser.add_argument("--full-disks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ.setdefault("FAIRSAOML_CACHE", str(scratch / "programs"))
        cases = [undisturbed(learner, TASKS, scratch / learner) for learner in tiny.LEARNERS]
        for case in cases:
            pace = " ".join(f"{name} {value:.1f}" for name, value in case.pace._asdict().items())
            print(f"{case.learner}: {case.lines} lines; seconds: {pace}", flush=True)
        hits, runs = kill_often(cases, scratch, asked.kills, chance)
        if runs:
            print(f"{hits.total()} kills of {runs} runs, each the same as one never touched:")
        for left, count in hits.most_common():
            print(f"  {count:4d} {left}")
        if asked.learn_kills:
            found = kill_learn(scratch / "learn", asked.learn_kills, chance)
            print(f"{found.total()} kills of learn, every row learned once: {dict(found)}")
        if not asked.full_disks:
            return
        try:
            with small_disk(scratch / "disk") as disk:
                found = fill(cases[0], disk, asked.full_disks, chance)
        except PermissionError as reason:
            print(f"no full disk was tried: {reason}")
        else:
            print(f"{found.total()} times on a full disk, then the same:")
            for left, count in found.most_common():
                print(f"  {count:4d} {left}")


if __name__ == "__main__":
    main()
