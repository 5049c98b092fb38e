"""Run a spec into a folder, round by round, and continue one that was stopped."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from signal import SIGINT, default_int_handler, signal
from typing import Any

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.core.types import State
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.files import read_json, write_json
from fairsaoml.learners.registry import entry
from fairsaoml.runs import folder as run_folder
from fairsaoml.runs.checkpoint import CURRENT, Checkpoint, save_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, SUMMARY, read_spec, writing
from fairsaoml.runs.journal import DIGEST, Journal, read_rounds, require_intact
from fairsaoml.runs.predictions import Predictions
from fairsaoml.runs.saved import OpenRun, manifest_of, name_other_versions
from fairsaoml.runs.spec import RunSpec, Setup, reopened_stream

CHECKPOINT_SECONDS = 10.0  # a kill costs at most this much work
INTERVAL = "FAIRSAOML_CHECKPOINT_SECONDS"  # in the environment: another number; 0 is every round

OnRound = Callable[[Setup, RoundResult], None]


class Interrupted(RunError):
    """Ctrl-C was pressed: the round was finished and saved; the command exits 130."""


def run(
    spec: RunSpec,
    folder: str | PathLike,
    *,
    force: bool = False,
    save_predictions: bool = False,
    repeat: bool = True,
    on_start: Callable[[Setup], None] | None = None,
    on_round: OnRound | None = None,
) -> dict[str, Any]:
    """Run a spec into a folder.

    Args:
        spec: what to run.
        folder: where its files go.
        force: replace the run in the folder.
        save_predictions: keep every decision, in `predictions.parquet`.
        repeat: run all seeds even where nothing is random; else the first one alone.
        on_start: called with the setup before anything is written.
        on_round: called with the setup and each finished round.

    Returns:
        The summary.

    Raises:
        RunError: the folder cannot be used or written.
        Interrupted: after Ctrl-C.
    """
    folder = Path(folder)
    use_cache()
    one_thread()
    run_folder.require_replaceable(folder, force=force)  # before the table is read and talked about
    setup = Setup.of(spec)
    if on_start:
        on_start(setup)
    if not (repeat or setup.stream.seeded or entry(spec.learner).is_random):
        spec = replace(spec, seeds=spec.seeds[:1])
    content = {**spec.to_json(setup), "save_predictions": save_predictions}
    if (path := content["stream"]["path"]) is not None:
        content["stream"]["relative_path"] = os.path.relpath(path, folder)
    with ExitStack() as held:
        with writing(folder):
            held.enter_context(run_folder.prepared(folder, force=force))
            run_folder.write_spec(folder, content)
        return run_rounds(OpenRun(folder, content, spec, setup), on_round=on_round)


def resume(folder: str | PathLike, *, on_round: OnRound | None = None) -> dict[str, Any]:
    """Continue a run from its last checkpoint.

    Args:
        folder: the run's.
        on_round: called with the setup and each finished round.

    Returns:
        The summary.

    Raises:
        RunError: the folder holds no run, or a damaged one.
        DataError: the rows of the run are not what they were.
        Interrupted: after Ctrl-C.
    """
    folder = Path(folder)
    use_cache()
    one_thread()
    content = read_spec(folder)
    if run_folder.is_finished(folder):
        from fairsaoml.runs.learn import finish  # which is itself a way to run rounds

        finish(folder, on_round)
        require_intact(folder / ROUNDS, folder / CHECKPOINT / CURRENT)
        return run_folder.finished_summary(folder)
    if "before" in content:
        raise RunError(
            f"expected a run with rows to come, got a model without a stream in {folder}; give it "
            f"new rows with `fairsaoml learn {folder} FILE`"
        )
    name_other_versions(content)
    with run_folder.locked(folder):
        run = OpenRun.of(folder, content, lambda saved: reopened_stream(saved, folder))
        return run_rounds(run, run.last_checkpoint(), on_round=on_round)


def run_rounds(
    run: OpenRun,
    begun: Checkpoint | None = None,
    *,
    before: int = 0,
    on_round: OnRound | None = None,
) -> dict[str, Any]:
    """Run the rounds after a checkpoint, or all; write journal, checkpoints and summary.

    Args:
        run: what to run, in its folder, which must be locked.
        begun: the checkpoint to go on from.
        before: how many rounds came before the first task of the setup's stream; its length counts
            them.
        on_round: called with the setup and each finished round.
    """
    folder, content, spec, setup = run
    manifest, interval = manifest_of(content), _checkpoint_seconds()
    last = after = begun.round if begun else 0
    length = setup.stream.length
    saved = time.monotonic()

    def save(state: State) -> None:
        with writing(folder):
            journal.sync()
            manifest[DIGEST] = journal.digest
            save_checkpoint(folder / CHECKPOINT, last, state, manifest)

    with ExitStack() as stack:
        with writing(folder):
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
            before=before,
        ):
            with writing(folder):
                journal.append(result.records)
                predictions.append(result, spec.seeds)
            last = result.round
            if on_round:
                on_round(setup, result)
            is_last, stopping = last == length, stop()
            if stopping or is_last or time.monotonic() - saved >= interval:
                save(result.state)
                saved = time.monotonic()
            if stopping and not is_last:
                raise Interrupted(
                    f"stopped after round {last}; continue with `fairsaoml run --resume {folder}`"
                )
        if last == 0:
            raise RunError(f"expected at least one task in {spec.stream}, got none")
        if length is None and last > after:
            save(result.state)
        with writing(folder):
            predictions.finish()
    with writing(folder):
        return write_summary(folder, spec, setup.stream.best)


def write_summary(folder: Path, spec: RunSpec, best: Any) -> dict[str, Any]:
    """Summarise the journal in a folder into `summary.json`; return its content.

    A model from Python has no summary, and an empty one is returned, until its first round here.
    """
    lines, content = read_rounds(folder / ROUNDS), read_spec(folder)
    if not lines and "before" in content:
        (folder / SUMMARY).unlink(missing_ok=True)
        return {}
    dropped = (content["stream"]["encoder"] or {}).get("dropped", ())
    summary = summarise(
        lines,
        learner=spec.learner,
        stream=spec.stream,
        seeds=spec.seeds,
        best=best,
        asked=Asked.of(content),
        columns_left_out=len(dropped),
        # What stands in brackets is advice, which the notes before the first round gave.
        column_reasons=[column["reason"].partition(" (")[0] for column in dropped],
    )
    write_json(folder / SUMMARY, summary)
    return read_json(folder / SUMMARY)


def _checkpoint_seconds() -> float:
    """Seconds between checkpoints: from the environment, or the default."""
    given = os.environ.get(INTERVAL, CHECKPOINT_SECONDS)
    with suppress(ValueError):
        if (seconds := float(given)) >= 0:
            return seconds
    raise ConfigError(f"{INTERVAL} must be a number of seconds >= 0; got {given!r}")


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
