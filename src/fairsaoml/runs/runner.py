"""Running a spec: the run directory as it fills, round by round, and as it is gone on with."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
from fairsaoml.files import read_json, write_json
from fairsaoml.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fairsaoml.runs.journal import Journal, read_rounds, whole_rounds
from fairsaoml.runs.predictions import PARTS, PREDICTIONS, Predictions
from fairsaoml.runs.spec import RunSpec, Setup

__all__ = ["Interrupted", "free_folder", "is_finished", "load_run", "prepare", "resume", "run"]

SPEC, ROUNDS, SUMMARY, CHECKPOINT = "spec.json", "rounds.jsonl", "summary.json", "checkpoint"
# All that a run ever writes; `--force` removes these and nothing else.
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
    """Ctrl-C: the round was finished and saved; the command exits 130."""


def free_folder(spec: RunSpec) -> Path:
    """A folder under runs/ that nothing is in yet."""
    stem = Path(spec.stream).name.split(".")[0].replace(":", "-")
    for number in range(1, 10_000):
        folder = Path("runs") / (f"{stem}-{spec.learner}" + (f"-{number}" * (number > 1)))
        if not folder.exists():
            return folder
    raise RunError("expected room under runs/, found 10,000 runs of this name; give --out DIR")


def prepare(folder: Path, *, force: bool = False) -> None:
    """Make a run's folder; one that holds another run is kept, unless forced."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another --out")
    has_spec = (folder / SPEC).exists()
    if has_spec and not force:
        raise RunError(
            f"{folder} already holds a run; go on with it by --resume {folder}, replace it by "
            "--force, or give another --out"
        )
    # Killed before its spec.json was whole, a run has left no more than that.
    ours = OURS if has_spec else (f".{SPEC}.part",)
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if not any(fnmatch(str(name), pattern) for pattern in ours):
            raise RunError(f"{folder} holds what is no run's ({name}); give another --out")
        found.append(path)
    # Folders after their files; the spec last: killed in between, the rest is still a run's.
    for path in sorted(found, key=lambda path: (path.name == SPEC, -len(path.parts))):
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
    on_round: OnRound | None = None,
) -> dict[str, Any]:
    """Play a spec into a folder and return its summary."""
    use_cache()
    one_thread()
    game = Setup.of(spec)
    with _writing(folder):
        prepare(folder, force=force)
        write_json(folder / SPEC, {**spec.to_json(game), "save_predictions": save_predictions})
    return _play(spec, game, folder, None, on_round)


def resume(folder: Path, *, on_round: OnRound | None = None) -> dict[str, Any]:
    """Go on with a run where its last checkpoint left it."""
    use_cache()
    one_thread()
    spec = load_spec(folder)
    if is_finished(folder):
        return read_json(folder / SUMMARY)
    game = Setup.of(spec)
    return _play(spec, game, folder, _begun(spec, game, folder), on_round)


def is_finished(folder: Path) -> bool:
    """Whether a run has reached its stream's end."""
    return (folder / SUMMARY).exists()


def load_spec(folder: Path) -> RunSpec:
    """The spec of the run in a folder."""
    if not (folder / SPEC).exists():
        raise RunError(
            f"expected a run in {folder}, found no {SPEC}; start it with `fairsaoml run STREAM "
            f"--out {folder}`"
        )
    try:
        content = read_json(folder / SPEC)
    except ValueError as error:
        raise RunError(f"{folder / SPEC} is damaged ({error}); start anew with --force") from None
    return RunSpec.from_json(content)


def load_run(folder: Path) -> tuple[RunSpec, Setup, Checkpoint]:
    """A run and what it has learned."""
    spec = load_spec(folder)
    game = Setup.of(spec)
    checkpoint = _checkpoint(spec, game, folder)
    if checkpoint is None:
        raise RunError(f"the run in {folder} has not learned anything yet; let it run on")
    return spec, game, checkpoint


def _begun(spec: RunSpec, game: Setup, folder: Path) -> Checkpoint | None:
    """Where to go on: at the newest checkpoint whose rounds the journal holds, all of them.

    The journal is on the disk before a checkpoint is, so only damage makes it the shorter one.
    """
    found = _checkpoint(spec, game, folder)
    journalled = whole_rounds(folder / ROUNDS, len(spec.seeds))
    if found is None or found.round <= journalled:
        return found
    earlier = _checkpoint(spec, game, folder, at_most=journalled)
    warnings.warn(
        f"{folder / ROUNDS} is damaged: it holds {journalled} of the {found.round} rounds that "
        f"were saved; going on after round {earlier.round if earlier else 0}",
        stacklevel=3,
    )
    return earlier


def _checkpoint(
    spec: RunSpec, game: Setup, folder: Path, *, at_most: int | None = None
) -> Checkpoint | None:
    like = jax.eval_shape(lambda keys: first_states(game.learner, keys), run_keys(spec.seeds))
    return load_checkpoint(folder / CHECKPOINT, like, at_most=at_most)


def _play(
    spec: RunSpec, game: Setup, folder: Path, begun: Checkpoint | None, on_round: OnRound | None
) -> dict[str, Any]:
    content = read_json(folder / SPEC)
    about = {key: content[key] for key in ("learner", "stream", "seeds", "versions")}
    interval = _checkpoint_seconds()
    after = begun.round if begun else 0
    saved = time.monotonic()
    last = after
    with ExitStack() as stack:
        with _writing(folder):
            journal = stack.enter_context(Journal(folder / ROUNDS, after=after))
            predictions = Predictions(folder, game.stream.schema, content["save_predictions"])
        stop = stack.enter_context(interruptible())
        for played in prequential(
            game.stream,
            game.learner,
            game.problem,
            spec.seeds,
            state=begun.state if begun else None,
            after=after,
        ):
            with _writing(folder):
                journal.append(played.records)
                predictions.append(played, spec.seeds)
            last = played.round
            if on_round:
                on_round(game, played)
            is_last, stopping = last == game.stream.length, stop()
            if stopping or is_last or time.monotonic() - saved >= interval:
                with _writing(folder):
                    journal.sync()
                    save_checkpoint(folder / CHECKPOINT, last, played.state, about)
                saved = time.monotonic()
            if stopping and not is_last:
                raise Interrupted(
                    f"stopped after round {last}; go on with `fairsaoml run --resume {folder}`"
                )
            state = played.state
        if last == 0:
            raise RunError(f"expected at least one task in {spec.stream}, got none")
        with _writing(folder):
            if game.stream.length is None and last > after:
                journal.sync()
                save_checkpoint(folder / CHECKPOINT, last, state, about)
            predictions.finish()
    summary = summarise(
        read_rounds(folder / ROUNDS),
        learner=spec.learner,
        stream=spec.stream,
        seeds=list(spec.seeds),
        best=game.stream.best,
    )
    with _writing(folder):
        write_json(folder / SUMMARY, summary)
    return read_json(folder / SUMMARY)


def _checkpoint_seconds() -> float:
    """Seconds between checkpoints: a person's, or ours."""
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
    """Say in a person's words that the disk is full, or whatever else keeps us from writing."""
    try:
        yield
    except OSError as error:
        advice = (
            "nothing that was saved is lost: put that right, then go on with "
            f"`fairsaoml run --resume {folder}`"
            if (folder / SPEC).exists()
            else "nothing was played yet: put that right, then start again"
        )
        reason = error.strerror or str(error)
        raise RunError(f"expected to write into {folder}, got: {reason}; {advice}") from error


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a question: the round at hand is finished first; twice means at once."""
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
