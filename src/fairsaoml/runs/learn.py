"""Continue a finished run with new rows: `fairsaoml learn FOLDER new.csv`.

The rows are cut and encoded as the run's own, scored before they are learned, and journalled as
further rounds; those that do not fill a task wait for the next call. A call is written down before
its first round, with its rows and a checkpoint to go back to. From then on it is finished, by
whatever comes next in the folder, however often it is killed; before that, nothing has happened.
The rows of a finished call are removed, but for those that wait.
"""

import os
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import pyarrow as pa

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.files import make_folder, read_json, sync_folder
from fairsaoml.runs.checkpoint import CURRENT, save_checkpoint
from fairsaoml.runs.folder import (
    CHECKPOINT,
    ROUNDS,
    SERVICE,
    SUMMARY,
    is_finished,
    locked,
    read_spec,
)
from fairsaoml.runs.journal import DIGEST, Journal, require_intact
from fairsaoml.runs.learned import (
    KEPT,
    find_new_rows,
    kept_table,
    read_record,
    undo_folder,
    write_kept,
    write_record,
)
from fairsaoml.runs.predictions import Predictions, read_parquet
from fairsaoml.runs.runner import OnRound, run_rounds, write_summary, writing
from fairsaoml.runs.saved import OpenRun, manifest_of, name_other_versions, served_round
from fairsaoml.runs.spec import RunSpec, stream_without_rows
from fairsaoml.streams.stream import Stream, checked
from fairsaoml.streams.table.cutting import TaskRows, whole_tasks
from fairsaoml.streams.table.dates import Clock
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.reading import join, open_source
from fairsaoml.streams.table.stream import encoded_tasks

LEARNING, DONE, UNDOING = "learning", "done", "undoing"


class Learned(NamedTuple):
    """What a call has done."""

    rows: int  # given
    known: int  # of them given before, and skipped: they were learned, or wait
    learned: int  # in full tasks, those that had been waiting included
    rounds: int
    waiting: int  # for the next call
    summary: dict[str, Any]  # of the whole run
    task_rows: int | None = None  # that fill a task; None where time does


class Undone(NamedTuple):
    """What was taken back, and what the run is again."""

    rows: int  # new ones of the call that was taken back: learned or waiting
    rounds: int  # that it had added
    after: int  # how many rounds the run has
    waiting: int  # rows, for the next call
    summary: dict[str, Any]  # of the whole run


def learn(
    folder: str | PathLike,
    source: Any,
    *,
    id: str | None = None,
    on_round: OnRound | None = None,
) -> Learned:
    """Continue the run in a folder with new rows.

    Rows that were learned before are skipped: those at the beginning of the source that are the
    run's table or the rows of earlier calls, one after another, and those whose `id` is known.

    Args:
        folder: of a finished run on a table.
        source: a file (CSV or Parquet) or a dataframe, with the columns of the run's table.
        id: the column that tells rows apart; the one of the first call that named it by default.
        on_round: called with the setup and each finished round.

    Returns:
        How many rows were learned, skipped or wait for more, and the run's new summary.

    Raises:
        ConfigError: another id than before.
        DataError: the rows cannot be read, or do not fit the run's; nothing was learned.
        RunError: the folder holds no finished run on a table, or another process works in it.
    """
    folder = Path(folder)
    use_cache()
    one_thread()
    content = read_spec(folder)
    name_other_versions(content)
    with locked(folder):
        record = _finished(folder, content, on_round)
        saved = content["stream"]
        if saved.get("cut") is None:
            raise RunError(
                f"expected a run on a table in {folder}, got one on {saved['name']}; only a table "
                "can be continued with rows of the same kind"
            )
        if not is_finished(folder) and "before" not in content:
            raise RunError(
                f"the run in {folder} has not finished; continue it first with "
                f"`fairsaoml run --resume {folder}`"
            )
        if id is not None and record["id"] not in (None, id):
            raise ConfigError(f"expected --id {record['id']} as before, got {id!r}")
        id = id or record["id"]
        given = open_source(source)
        number = len(record["calls"]) + 1
        rows, fingerprint, ids = find_new_rows(folder, saved, record, given, id)
        known = fingerprint["rows"] - rows.num_rows
        summary = read_json(folder / SUMMARY) if is_finished(folder) else {}
        if not rows.num_rows:
            waiting = record["calls"][-1]["waiting"] if record["calls"] else 0
            return Learned(known, known, 0, 0, waiting, summary, saved["cut"]["rows"])
        if (waiting_rows := kept_table(folder, "waiting", number - 1)).exists():
            rows = join([read_parquet(waiting_rows), rows])
        tasks, rest = whole_tasks(rows, saved["cut"])
        run = OpenRun.of(folder, content)
        # Rows that cannot be learned are refused before anything is written.
        all_rows = [*tasks, TaskRows(rest, 0)] if rest.num_rows else tasks
        for task in _stream_of(run.setup.stream, all_rows).tasks(0):
            checked(task, run.setup.stream.schema, 0)
        begun = run.last_checkpoint()
        if begun is None or begun.round < content.get("before", 0) + summary.get("rounds", 0):
            raise RunError(f"the run in {folder} has no checkpoint to go on from; start it again")
        if served_round(folder) > begun.round:
            raise RunError(
                f"expected all that was learned in the run's own model, got a service in {folder} "
                f"that has learned to round {served_round(folder)}, the run to {begun.round}; go "
                f"on with `fairsaoml serve`, or move {folder / SERVICE} away to leave that out"
            )
        call = {
            "name": given.name if given.path is None else given.path.name,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "fingerprint": fingerprint,
            "known": known,
            "learned": rows.num_rows - rest.num_rows,
            "waiting": rest.num_rows,
            "after": begun.round,
            "rounds": len(tasks),
            "state": LEARNING,
        }
        with writing(folder):
            make_folder(folder / KEPT)
            for part, values in ids.items():
                write_kept(kept_table(folder, "ids", part), pa.table({"id": values}))
            write_kept(kept_table(folder, "rows", number), rows)
            about = manifest_of(content) | {DIGEST: begun.manifest.get(DIGEST)}
            save_checkpoint(undo_folder(folder, number), begun.round, begun.state, about)
            record |= {"id": id, "calls": [*record["calls"], call]}
            write_record(folder, record)  # from here on the rows are this run's
        summary = _finish_learning(folder, content, record, on_round)
        learned = rows.num_rows - rest.num_rows
        return Learned(
            rows=fingerprint["rows"],
            known=known,
            learned=learned,
            rounds=len(tasks),
            waiting=rest.num_rows,
            summary=summary,
            task_rows=saved["cut"]["rows"],
        )


def undo(folder: str | PathLike) -> dict[str, Any]:
    """Undo the last call of `learn`: the run is as it was before it.

    Args:
        folder: of the run.

    Returns:
        The run's summary.

    Raises:
        RunError: there is none, or it was taken back already; only the last one can be.
    """
    return take_back(Path(folder)).summary


def take_back(folder: Path) -> Undone:
    """Undo the last call of `learn`, as `undo` does; return what was taken back."""
    content = read_spec(folder)
    with locked(folder):
        record = _finished(folder, content)
        if not record["calls"] or not undo_folder(folder, len(record["calls"])).exists():
            raise RunError(
                f"expected a call of `fairsaoml learn` to take back in {folder}, found none; only "
                "the last one can be taken back"
            )
        call = record["calls"][-1]
        with writing(folder):
            call["state"] = UNDOING
            write_record(folder, record)
        summary = _finish_undoing(folder, content, record)
        return Undone(
            rows=call["fingerprint"]["rows"] - call["known"],
            rounds=call["rounds"],
            after=call["after"],
            waiting=record["calls"][-1]["waiting"] if record["calls"] else 0,
            summary=summary,
        )


def finish(folder: Path, on_round: OnRound | None = None) -> None:
    """Finish a call that was killed, if there is one; the folder must not be locked."""
    if any(call["state"] != DONE for call in read_record(folder)["calls"]):
        content = read_spec(folder)
        with locked(folder):
            _finished(folder, content, on_round)


def _stream_of(stream: Stream, tasks: list[TaskRows], before: int = 0) -> Stream:
    """A run's stream whose tasks after round `before` are these, encoded as the run's own."""
    how = stream.cut or {}
    encoder = Encoder.from_json(stream.encoder or {})
    clock = None if how["time"] is None else Clock(column=how["time"], format=how["format"])
    return replace(
        stream,
        tasks=lambda seed: encoded_tasks(tasks, encoder, how["domain"], clock),
        length=before + len(tasks),
    )


# What was begun is finished


def _finished(
    folder: Path, content: dict[str, Any], on_round: OnRound | None = None
) -> dict[str, Any]:
    """The record of calls, the last one finished."""
    record = read_record(folder)
    state = record["calls"][-1]["state"] if record["calls"] else DONE
    if state == LEARNING:
        _finish_learning(folder, content, record, on_round)
    elif state == UNDOING:
        _finish_undoing(folder, content, record)
    return record


def _finish_learning(
    folder: Path, content: dict[str, Any], record: dict[str, Any], on_round: OnRound | None
) -> dict[str, Any]:
    """Run the rounds of the last call that are not saved yet; then forget its rows."""
    number, call = len(record["calls"]), record["calls"][-1]
    rows = read_parquet(kept_table(folder, "rows", number))
    tasks, rest = whole_tasks(rows, content["stream"]["cut"])
    run = OpenRun.of(
        folder,
        content,
        lambda saved: _stream_of(stream_without_rows(saved), tasks, call["after"]),
    )
    begun = run.last_checkpoint()
    if begun is None or begun.round < call["after"]:
        back = undo_folder(folder, number)
        require_intact(folder / ROUNDS, back / CURRENT)
        begun = run.newest_checkpoint(back)
    summary = run_rounds(run, begun, before=call["after"], on_round=on_round)
    with writing(folder):
        write_kept(kept_table(folder, "waiting", number), rest)
        call["state"] = DONE
        write_record(folder, record)
        kept_table(folder, "rows", number).unlink(missing_ok=True)
        # What the call before left for it to be taken back.
        kept_table(folder, "waiting", number - 2).unlink(missing_ok=True)
        rmtree(undo_folder(folder, number - 1), ignore_errors=True)
    return summary


def _finish_undoing(
    folder: Path, content: dict[str, Any], record: dict[str, Any]
) -> dict[str, Any]:
    """Put back what was there before the last call."""
    number, call = len(record["calls"]), record["calls"][-1]
    before = undo_folder(folder, number)
    with writing(folder):
        if before.exists():
            rmtree(folder / CHECKPOINT, ignore_errors=True)
            os.rename(before, folder / CHECKPOINT)
            sync_folder(folder)
        with Journal(folder / ROUNDS, after=call["after"]):
            pass  # cut
        stream = stream_without_rows(content["stream"])
        Predictions(folder, stream.schema, content["save_predictions"]).cut(call["after"])
        summary = write_summary(folder, RunSpec.from_json(content), stream.best)
        del record["calls"][-1]
        write_record(folder, record)
        for name in ("rows", "waiting", "ids"):
            kept_table(folder, name, number).unlink(missing_ok=True)
    return summary
