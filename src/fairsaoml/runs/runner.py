"""Run a spec into a folder, round by round, and continue one that was stopped."""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from signal import SIGINT, default_int_handler, signal
from typing import Any

import jax

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.core.keys import run_keys
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.prequential import first_states, prequential
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.files import read_json, write_json, write_text
from fairsaoml.learners.registry import entry
from fairsaoml.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fairsaoml.runs.journal import Journal, read_rounds, whole_rounds
from fairsaoml.runs.predictions import PARTS, PREDICTIONS, Predictions
from fairsaoml.runs.spec import RunSpec, Setup, reopened_stream, stream_without_rows

__all__ = ["Interrupted", "free_folder", "is_finished", "load_run", "prepare", "resume", "run"]

SPEC, ROUNDS, SUMMARY, CHECKPOINT = "spec.json", "rounds.jsonl", "summary.json", "checkpoint"
# All files of a run; `--force` removes these and nothing else.
OURS = (
    *(
        pattern
        for name in (SPEC, ROUNDS, SUMMARY, "report.html", PREDICTIONS)
        for pattern in (name, f".{name}.part")
    ),
    CHECKPOINT,
    f"{CHECKPOINT}/manifest.json",
    f"{CHECKPOINT}/previous.json",
    f"{CHECKPOINT}/state-*.safetensors",
    f"{CHECKPOINT}/.*.part",
    PARTS,
    f"{PARTS}/*.parquet",
)
CHECKPOINT_SECONDS = 10.0  # a kill costs at most this much work
INTERVAL = "FAIRSAOML_CHECKPOINT_SECONDS"  # in the environment: another number; 0 is every round

OnRound = Callable[[Setup, RoundResult], None]


class Interrupted(RunError):
    """Ctrl-C was pressed: the round was finished and saved; the command exits 130."""


def free_folder(spec: RunSpec) -> Path:
    """Return a folder under runs/ that does not exist yet."""
    stem = Path(spec.stream).name.split(".")[0].replace(":", "-")
    for number in range(1, 10_000):
        folder = Path("runs") / (f"{stem}-{spec.learner}" + (f"-{number}" * (number > 1)))
        if not folder.exists():
            return folder
    raise RunError("expected room under runs/, found 10,000 runs of this name; give --out DIR")


def prepare(folder: Path, *, force: bool = False) -> None:
    """Create a run's folder, empty.

    Args:
        folder: the run's.
        force: remove the run that it holds.

    Raises:
        RunError: it holds a run and `force` is not given, or files that are no run's.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another --out")
    has_spec = (folder / SPEC).exists()
    if has_spec and not force:
        raise RunError(
            f"{folder} already holds a run; continue it with --resume {folder}, replace it with "
            "--force, or give another --out"
        )
    # A run that was killed before its spec.json was complete has left only this.
    ours = OURS if has_spec else (f".{SPEC}.part",)
    paths = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if not any(fnmatch(str(name), pattern) for pattern in ours):
            raise RunError(f"{folder} holds a file that is no run's ({name}); give another --out")
        paths.append(path)
    # Folders after their files, and the spec last: if killed meanwhile, the rest is still a run.
    for path in sorted(paths, key=lambda path: (path.name == SPEC, -len(path.parts))):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def run(
    spec: RunSpec,
    folder: Path,
    *,
    force: bool = False,
    save_predictions: bool = False,
    repeat: bool = True,
    on_round: OnRound | None = None,
) -> dict[str, Any]:
    """Run a spec into a folder.

    Args:
        spec: what to run.
        folder: where its files go.
        force: replace the run in the folder.
        save_predictions: keep every decision, in `predictions.parquet`.
        repeat: run all seeds even where nothing is random; else the first one alone.
        on_round: called with the setup and each finished round.

    Returns:
        The summary.

    Raises:
        RunError: the folder cannot be used or written.
        Interrupted: after Ctrl-C.
    """
    use_cache()
    one_thread()
    setup = Setup.of(spec)
    if not (repeat or setup.stream.seeded or entry(spec.learner).is_random):
        spec = replace(spec, seeds=spec.seeds[:1])
    with _writing(folder):
        prepare(folder, force=force)
        content = {**spec.to_json(setup), "save_predictions": save_predictions}
        # All digits: the encoder in it is the one that resuming and predicting use.
        write_text(folder / SPEC, json.dumps(content, indent=2, allow_nan=False) + "\n")
    return _run_rounds(spec, setup, folder, None, on_round)


def resume(folder: Path, *, on_round: OnRound | None = None) -> dict[str, Any]:
    """Continue a run from its last checkpoint; return its summary.

    Args:
        folder: the run's.
        on_round: called with the setup and each finished round.

    Raises:
        RunError: the folder holds no run, or a damaged one.
        Interrupted: after Ctrl-C.
    """
    use_cache()
    one_thread()
    content = read_spec(folder)
    spec = RunSpec.from_json(content)
    if is_finished(folder):
        return read_json(folder / SUMMARY)
    saved = content["stream"]
    setup = Setup.of(spec, reopened_stream(saved), horizon=saved["length"])
    return _run_rounds(spec, setup, folder, _last_checkpoint(spec, setup, folder), on_round)


def is_finished(folder: Path) -> bool:
    """Return whether the run in a folder has reached its stream's end."""
    return (folder / SUMMARY).exists()


def load_spec(folder: Path) -> RunSpec:
    """The spec of the run in a folder."""
    return RunSpec.from_json(read_spec(folder))


def read_spec(folder: Path) -> dict[str, Any]:
    """The content of a run's spec.json."""
    if not (folder / SPEC).exists():
        raise RunError(
            f"expected a run in {folder}, found no {SPEC}; start it with `fairsaoml run STREAM "
            f"--out {folder}`"
        )
    try:
        return read_json(folder / SPEC)
    except ValueError as error:
        raise RunError(f"{folder / SPEC} is damaged ({error}); start again with --force") from None


def load_run(folder: Path) -> tuple[RunSpec, Setup, Checkpoint]:
    """A run and what it has learned, from its folder alone: the stream of the setup has no rows."""
    content = read_spec(folder)
    spec = RunSpec.from_json(content)
    setup = Setup.of(spec, stream_without_rows(content["stream"]))
    checkpoint = _checkpoint(spec, setup, folder)
    if checkpoint is None:
        raise RunError(f"the run in {folder} has not learned anything yet; let it run on")
    return spec, setup, checkpoint


def _last_checkpoint(spec: RunSpec, setup: Setup, folder: Path) -> Checkpoint | None:
    """The newest checkpoint whose rounds are all in the journal.

    The journal is written before a checkpoint is, so only damage makes it the shorter one.
    """
    newest = _checkpoint(spec, setup, folder)
    journalled = whole_rounds(folder / ROUNDS, len(spec.seeds))
    if newest is None or newest.round <= journalled:
        return newest
    earlier = _checkpoint(spec, setup, folder, at_most=journalled)
    warnings.warn(
        f"{folder / ROUNDS} is damaged: it holds {journalled} of the {newest.round} rounds that "
        f"were saved; continuing after round {earlier.round if earlier else 0}",
        stacklevel=3,
    )
    return earlier


def _checkpoint(
    spec: RunSpec, setup: Setup, folder: Path, *, at_most: int | None = None
) -> Checkpoint | None:
    like = jax.eval_shape(lambda keys: first_states(setup.learner, keys), run_keys(spec.seeds))
    return load_checkpoint(folder / CHECKPOINT, like, at_most=at_most)


def _run_rounds(
    spec: RunSpec, setup: Setup, folder: Path, begun: Checkpoint | None, on_round: OnRound | None
) -> dict[str, Any]:
    """Run the rounds after a checkpoint, or all; write journal, checkpoints and summary."""
    content = read_json(folder / SPEC)
    manifest = {key: content[key] for key in ("learner", "stream", "seeds", "versions")}
    interval = _checkpoint_seconds()
    after = begun.round if begun else 0
    saved = time.monotonic()
    last = after
    with ExitStack() as stack:
        with _writing(folder):
            journal = stack.enter_context(Journal(folder / ROUNDS, after=after))
            predictions = Predictions(folder, setup.stream.schema, content["save_predictions"])
        stop = stack.enter_context(interruptible())
        for result in prequential(
            setup.stream,
            setup.learner,
            setup.problem,
            spec.seeds,
            state=begun.state if begun else None,
            after=after,
        ):
            with _writing(folder):
                journal.append(result.records)
                predictions.append(result, spec.seeds)
            last = result.round
            if on_round:
                on_round(setup, result)
            is_last, stopping = last == setup.stream.length, stop()
            if stopping or is_last or time.monotonic() - saved >= interval:
                with _writing(folder):
                    journal.sync()
                    save_checkpoint(folder / CHECKPOINT, last, result.state, manifest)
                saved = time.monotonic()
            if stopping and not is_last:
                raise Interrupted(
                    f"stopped after round {last}; continue with `fairsaoml run --resume {folder}`"
                )
            state = result.state
        if last == 0:
            raise RunError(f"expected at least one task in {spec.stream}, got none")
        with _writing(folder):
            if setup.stream.length is None and last > after:
                journal.sync()
                save_checkpoint(folder / CHECKPOINT, last, state, manifest)
            predictions.finish()
    with _writing(folder):
        return write_summary(folder, spec, setup.stream.best)


def write_summary(folder: Path, spec: RunSpec, best: Any) -> dict[str, Any]:
    """Summarise the journal in a folder into `summary.json`; return its content."""
    lines = read_rounds(folder / ROUNDS)
    summary = summarise(
        lines,
        learner=spec.learner,
        stream=spec.stream,
        seeds=spec.seeds,
        best=best,
        asked=Asked.of(read_json(folder / SPEC)),
    )
    write_json(folder / SUMMARY, summary)
    return read_json(folder / SUMMARY)


def _checkpoint_seconds() -> float:
    """Seconds between checkpoints: from the environment, or the default."""
    given = os.environ.get(INTERVAL, CHECKPOINT_SECONDS)
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ConfigError(f"{INTERVAL} must be a number of seconds >= 0; got {given!r}")
    return seconds


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
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


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; pressed twice, it stops at once."""
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        signal(SIGINT, default_int_handler)

    try:
        before = signal(SIGINT, note)
    except ValueError:  # not the main thread: nobody can press Ctrl-C there
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal(SIGINT, before)
