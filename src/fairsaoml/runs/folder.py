"""A run's folder: what lies in it, who may write it, and when it may be replaced.

One lock, taken before anything is written or removed, is held by whatever works in the folder: a
run, `learn`, delayed labels, a service. It is a lock of the operating system on the file `.lock`,
which ends with the process, be it by a kill.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from itertools import count
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.files import open_regular, read_json, seal_of, write_sealed
from fairsaoml.runs.predictions import PARTS, PREDICTIONS

SPEC, ROUNDS, SUMMARY, CHECKPOINT = "spec.json", "rounds.jsonl", "summary.json", "checkpoint"
SERVICE, SERVED = "service", "model"  # a service's folder in a run's, and its model in there
LOCK = ".lock"
SEAL = "spec_sha256"
# All files of a run; `--force` removes these and nothing else.
WHOLE = (SPEC, ROUNDS, SUMMARY, "report.html", PREDICTIONS, "learned.json")
SAVED = ("manifest.json", "previous.json", "state-*.safetensors", ".*.part")
LEARNED = ("rows", "waiting", "ids", "undo", ".rows", ".waiting", ".ids")
OURS = (
    *WHOLE,
    *(f".{name}.part" for name in WHOLE),
    *(LOCK, CHECKPOINT, PARTS, f"{PARTS}/*.parquet", "learned"),
    *(f"{CHECKPOINT}/{name}" for name in SAVED),
    *(f"learned/{name}-*" for name in LEARNED),
)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no other process works in it meanwhile.

    Raises:
        RunError: another process holds it.
    """
    descriptor = open_regular(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        with suppress(ImportError, OSError):  # a system, or a file system, without locks
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is working in {folder} (a run, `learn` or `serve`); wait "
                    "for it, or end it first"
                ) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError, such as a full disk, into a RunError that says what to do."""
    try:
        yield
    except OSError as error:
        advice = (
            "nothing that was saved is lost: fix that, then continue with "
            f"`fairsaoml run --resume {folder}`"
            if (folder / SPEC).exists()
            else "nothing was run yet: fix that, then start again"
        )
        reason = error.strerror or str(error)
        raise RunError(f"expected to write into {folder}, got: {reason}; {advice}") from error


def free_folder(stem: str) -> Path:
    """Create a folder under runs/ that did not exist, so that two runs never get the same."""
    for number in count(1):
        folder = Path("runs") / (stem + (f"-{number}" * (number > 1)))
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            break
    return folder


@contextmanager
def prepared(folder: Path, *, force: bool = False) -> Iterator[None]:
    """Create a run's folder, empty, and hold its lock.

    Args:
        folder: the run's.
        force: remove the run that it holds, unless that is being worked on.

    Raises:
        RunError: it holds a run and `force` is not given, files that are no run's, or a live run.
    """
    require_replaceable(folder, force=force)  # before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        # Folders after their files, the spec last: if killed meanwhile, the rest is still a run.
        paths = require_replaceable(folder, force=force)
        for path in sorted(paths, key=lambda path: (path.name == SPEC, -len(path.parts))):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            elif path.name != LOCK:
                path.unlink()
        yield


def require_replaceable(folder: Path, *, force: bool) -> list[Path]:
    """Return the files of the run in a folder; RunError where they may not be removed."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another --out")
    has_spec = (folder / SPEC).exists()
    if has_spec and not force:
        raise RunError(
            f"{folder} already holds a run; continue it with --resume {folder}, replace it with "
            "--force, or give another --out"
        )
    # A run that was killed before its spec.json was complete has left only this.
    ours = OURS if has_spec else (LOCK, f".{SPEC}.part")
    paths = list(folder.rglob("*"))
    for name in (str(path.relative_to(folder)) for path in paths):
        if not any(fnmatch(name, pattern) for pattern in ours):
            raise RunError(f"{folder} holds a file that is no run's ({name}); give another --out")
    return paths


def finished_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a run that has reached its stream's end, else {}; so is a torn one."""
    try:
        summary = read_json(folder / SUMMARY)
        return summary if "overall" in summary else {}
    except (OSError, ValueError, TypeError):
        return {}


def is_finished(folder: Path) -> bool:
    """Return whether the run in a folder has reached its stream's end."""
    return bool(finished_summary(folder))


def write_spec(folder: Path, content: dict[str, Any]) -> None:
    """Write spec.json: every digit of what is read back, sealed by its checksum."""
    write_sealed(folder / SPEC, content, SEAL)


def read_spec(folder: Path) -> dict[str, Any]:
    """Return the content of a run's spec.json.

    Raises:
        RunError: there is none, or it is not what was written.
    """
    if not (folder / SPEC).exists():
        if (folder / "manifest.json").exists():
            raise RunError(
                f"expected a run in {folder}, found a model saved by `model.save`; write it with "
                "`model.save_run(folder)`, which is for the commands"
            )
        raise RunError(
            f"expected a run in {folder}, found no {SPEC}; start it with `fairsaoml run STREAM "
            f"--out {folder}`"
        )
    try:
        content = read_json(folder / SPEC)
        seal = content.pop(SEAL, None)  # there was none in earlier versions
        changed = seal is not None and seal != seal_of(content)
    except (ValueError, TypeError, AttributeError) as error:
        raise RunError(f"{folder / SPEC} is damaged ({error}); start again with --force") from None
    if changed:
        raise RunError(
            f"{folder / SPEC} is not what was written; put it back, or start again with --force: "
            "other settings are another run"
        )
    return content
