"""Continue a finished run with new rows: `fairsaoml learn FOLDER new.csv`.

The rows are cut and encoded as the run's own, scored before they are learned, and journalled as
further rounds; those that do not fill a task wait for the next call. A call is written down before
its first round, with its rows and a checkpoint to go back to. From then on it is finished, by
whatever comes next in the folder, however often it is killed; before that, nothing has happened.
The rows of a finished call are removed, but for those that wait.

The folder keeps a record of the calls. Rows that were learned are known by the digest of what was
read, and by their ids.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml import files
from fairsaoml.core.errors import ConfigError, DataError, RunError, warn
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs import folder as run_folder
from fairsaoml.runs import runner
from fairsaoml.runs.checkpoint import CURRENT, save_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, locked, read_spec, writing
from fairsaoml.runs.journal import DIGEST, Journal, require_intact
from fairsaoml.runs.predictions import Predictions, read_parquet, write_parquet
from fairsaoml.runs.saved import OpenRun, manifest_of, name_other_versions, served_round
from fairsaoml.runs.spec import RunSpec, stream_without_rows, table_path
from fairsaoml.streams.stream import Stream, checked
from fairsaoml.streams.table import survey
from fairsaoml.streams.table.columns import array, canonical
from fairsaoml.streams.table.cutting import TaskRows, whole_tasks
from fairsaoml.streams.table.dates import Clock
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.reading import Source, join, open_source, read_table
from fairsaoml.streams.table.stream import encoded_tasks

RECORD, KEPT = "learned.json", "learned"
SEAL = "sha256"
LEARNING, DONE, UNDOING = "learning", "done", "undoing"

Content = dict[str, Any]  # of spec.json
Record = dict[str, Any]  # the calls so far, and the column of ids


class Learned(NamedTuple):
    """What a call has done."""

    rows: int  # given
    known: int  # of them given before, and skipped: they were learned, or wait
    learned: int  # in full tasks, those that had been waiting included
    rounds: int
    waiting: int  # for the next call
    summary: dict[str, Any]  # of the whole run
    task_rows: int | None = None  # that fill a task; None where time does


def learn(
    folder: str | PathLike,
    source: Any,
    *,
    id: str | None = None,
    on_round: runner.OnRound | None = None,
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
        summary = run_folder.finished_summary(folder)
        if not summary and "before" not in content:
            raise RunError(
                f"the run in {folder} has not finished; continue it first with "
                f"`fairsaoml run --resume {folder}`"
            )
        if id is not None and record["id"] not in (None, id):
            raise ConfigError(f"expected --id {record['id']} as before, got {id!r}")
        id = id or record["id"]
        given = open_source(source)
        number = len(record["calls"]) + 1
        rows, fingerprint, ids = _new_rows(folder, saved, record, given, id)
        done = Learned(
            rows=fingerprint["rows"],
            known=fingerprint["rows"] - rows.num_rows,
            learned=0,
            rounds=0,
            waiting=_last_call(record)["waiting"],
            summary=summary,
            task_rows=saved["cut"]["rows"],
        )
        if not rows.num_rows:
            return done
        if (waiting := _kept(folder, "waiting", number - 1)).exists():
            rows = join([read_parquet(waiting), rows])
        tasks, rest = whole_tasks(rows, saved["cut"])
        run = OpenRun.of(folder, content)
        # Rows that cannot be learned are refused before anything is written.
        all_rows = [*tasks, TaskRows(rest, 0)] if rest.num_rows else tasks
        for task in _stream_of(run.setup.stream, all_rows).tasks(0):
            checked(task, run.setup.stream.schema, 0)
        begun = run.last_checkpoint()
        if begun is None or begun.round < content.get("before", 0) + summary.get("rounds", 0):
            raise RunError(f"the run in {folder} has no checkpoint to go on from; start it again")
        if (served := served_round(folder)) > begun.round:
            raise RunError(
                f"expected all that was learned in the run's own model, got a service in {folder} "
                f"that has learned to round {served}, the run to {begun.round}; go on with "
                f"`fairsaoml serve`, or move {folder / run_folder.SERVICE} away to leave that out"
            )
        call = {
            "name": given.name if given.path is None else given.path.name,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "fingerprint": fingerprint,
            "known": done.known,
            "learned": rows.num_rows - rest.num_rows,
            "waiting": rest.num_rows,
            "after": begun.round,
            "rounds": len(tasks),
            "state": LEARNING,
        }
        with writing(folder):
            files.make_folder(folder / KEPT)
            for part, values in ids.items():
                write_parquet(_kept(folder, "ids", part), pa.table({"id": values}))
            write_parquet(_kept(folder, "rows", number), rows)
            about = manifest_of(content) | {DIGEST: begun.manifest.get(DIGEST)}
            save_checkpoint(_undo_folder(folder, number), begun.round, begun.state, about)
            record |= {"id": id, "calls": [*record["calls"], call]}
            # From here on the rows are this run's.
            files.write_sealed(folder / RECORD, record, SEAL)
        summary = _finish_learning(folder, content, record, on_round)
        counts = {key: call[key] for key in ("learned", "rounds", "waiting")}
        return done._replace(**counts, summary=summary)


def undo(folder: str | PathLike) -> dict[str, Any]:
    """Undo the last call of `learn`: the run is as it was before it.

    Args:
        folder: of the run.

    Returns:
        The run's summary.

    Raises:
        RunError: there is none, or it was taken back already; only the last one can be.
    """
    return take_back(Path(folder))[-1]


def take_back(folder: Path) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Undo the last call of `learn`; return it, how many rows wait again, and the summary."""
    content = read_spec(folder)
    with locked(folder):
        record = _finished(folder, content)
        if not record["calls"] or not _undo_folder(folder, len(record["calls"])).exists():
            raise RunError(
                f"expected a call of `fairsaoml learn` to take back in {folder}, found none; only "
                "the last one can be taken back"
            )
        call = record["calls"][-1]
        with writing(folder):
            call["state"] = UNDOING
            files.write_sealed(folder / RECORD, record, SEAL)
        summary = _finish_undoing(folder, content, record)
        return call, _last_call(record)["waiting"], summary


def finish(folder: Path, on_round: runner.OnRound | None = None) -> None:
    """Finish a call that was killed, if there is one; the folder must not be locked."""
    if _last_call(_read_record(folder))["state"] != DONE:
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


def _finished(folder: Path, content: Content, on_round: runner.OnRound | None = None) -> Record:
    """The record of calls, the last one finished."""
    record = _read_record(folder)
    state = _last_call(record)["state"]
    if state == LEARNING:
        _finish_learning(folder, content, record, on_round)
    elif state == UNDOING:
        _finish_undoing(folder, content, record)
    return record


def _finish_learning(
    folder: Path, content: Content, record: Record, on_round: runner.OnRound | None
) -> dict[str, Any]:
    """Run the rounds of the last call that are not saved yet; then forget its rows."""
    number, call = len(record["calls"]), record["calls"][-1]
    after, saved_rows = call["after"], _kept(folder, "rows", number)
    tasks, rest = whole_tasks(read_parquet(saved_rows), content["stream"]["cut"])
    run = OpenRun.of(
        folder, content, lambda saved: _stream_of(stream_without_rows(saved), tasks, after)
    )
    begun = run.last_checkpoint()
    if begun is None or begun.round < after:
        back = _undo_folder(folder, number)
        require_intact(folder / ROUNDS, back / CURRENT)
        begun = run.newest_checkpoint(back)
    summary = runner.run_rounds(run, begun, before=after, on_round=on_round)
    with writing(folder):
        write_parquet(_kept(folder, "waiting", number), rest)
        call["state"] = DONE
        files.write_sealed(folder / RECORD, record, SEAL)
        saved_rows.unlink(missing_ok=True)
        # What the call before left for it to be taken back.
        _kept(folder, "waiting", number - 2).unlink(missing_ok=True)
        rmtree(_undo_folder(folder, number - 1), ignore_errors=True)
    return summary


def _finish_undoing(folder: Path, content: Content, record: Record) -> dict[str, Any]:
    """Put back what was there before the last call."""
    number, after = len(record["calls"]), record["calls"][-1]["after"]
    before = _undo_folder(folder, number)
    with writing(folder):
        if before.exists():
            rmtree(folder / CHECKPOINT, ignore_errors=True)
            os.rename(before, folder / CHECKPOINT)
            files.sync_folder(folder)
        with Journal(folder / ROUNDS, after=after):
            pass  # cut
        stream = stream_without_rows(content["stream"])
        Predictions(folder, stream.schema, content["save_predictions"]).cut(after)
        summary = runner.write_summary(folder, RunSpec.from_json(content), stream.best)
        del record["calls"][-1]
        files.write_sealed(folder / RECORD, record, SEAL)
        for name in ("rows", "waiting", "ids"):
            _kept(folder, name, number).unlink(missing_ok=True)
    return summary


# What the folder keeps of calls


def _read_record(folder: Path) -> Record:
    """The calls so far; RunError where they were changed since."""
    files.refuse_link(folder / KEPT)
    if not (folder / RECORD).exists():
        return {"id": None, "calls": []}
    try:
        record = files.read_json(folder / RECORD)
        whole = record.pop(SEAL) == files.seal_of(record)
    except (ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise RunError(
            f"{folder / RECORD} is not what was written; put it back: it says what was learned"
        )
    return record


def _last_call(record: Record) -> dict[str, Any]:
    """The newest call; before the first one, what is there is finished and nothing waits."""
    return record["calls"][-1] if record["calls"] else {"state": DONE, "waiting": 0}


def _kept(folder: Path, name: str, call: int) -> Path:
    """Where a table of a call is kept."""
    return folder / KEPT / f"{name}-{call:04d}.parquet"


def _undo_folder(folder: Path, call: int) -> Path:
    """Where the checkpoint is that a call is taken back to."""
    return folder / KEPT / f"undo-{call:04d}"


# Which rows are new


def new_rows_of_the_table(folder: Path) -> tuple[Path, int | None]:
    """Return where a run's table is and how many rows it has that were never learned.

    None where it does not begin with the rows that were. Raises DataError where it is gone.
    """
    saved = read_spec(folder)["stream"]
    path, known = table_path(saved, folder), _fingerprints(saved, _read_record(folder))
    rows = read_table(path, saved["fingerprint"]["columns"])
    begins = survey.unknown_from(rows, known)
    return path, rows.num_rows - begins if begins else None


def _new_rows(
    folder: Path, saved: Mapping[str, Any], record: Record, given: Source, id: str | None
) -> tuple[Any, dict[str, Any], dict[int, Any]]:
    """The rows that were not learned before, the fingerprint of all, and ids to keep, by call."""
    columns = list(saved["fingerprint"]["columns"])
    where = "the rows" if given.path is None else str(given.path)
    table = read_table(given, dict.fromkeys(columns if id is None else [*columns, id]), where)
    rows = table.select(columns)
    begins = survey.unknown_from(rows, _fingerprints(saved, record))
    seen = survey.Fingerprint()
    seen.add(rows)
    if id is None:
        return rows.slice(begins), seen.to_json(), {}
    calls, ids = len(record["calls"]), _ids(table, id, where)
    keep = {calls + 1: ids}
    if record["id"] is None:
        keep[0] = known = _own_ids(folder, saved, id)
    else:
        paths = [_kept(folder, "ids", call) for call in range(calls + 1)]
        known = pa.concat_arrays(array(read_parquet(path)["id"]) for path in paths if path.exists())
    fresh = np.zeros(len(ids), bool)
    fresh[np.unique(ids.to_numpy(zero_copy_only=False), return_index=True)[1]] = True
    fresh &= ~pc.is_in(ids, value_set=known).to_numpy(zero_copy_only=False)
    fresh[:begins] = False
    return rows.filter(pa.array(fresh)), seen.to_json(), keep


def _own_ids(folder: Path, saved: Mapping[str, Any], id: str) -> Any:
    """The ids of the rows that the run began with, as far as its table still has them."""
    own, columns = saved["fingerprint"], list(saved["fingerprint"]["columns"])
    try:
        opened = open_source(table_path(saved, folder)).first(own["rows"])
        rows = read_table(opened, dict.fromkeys([id, *columns]), str(opened.path))
        if survey.known_beginning(rows.select(columns), [own]) == own["rows"]:
            return _ids(rows, id, str(opened.path))
        reason = "the table has changed"
    except DataError as error:
        reason = str(error)
    warn(
        f"the ids of the rows that the run began with are not known ({reason}): any of them that "
        "come again are learned again"
    )
    return pa.array([], pa.string())


def _ids(rows: Any, id: str, where: str) -> Any:
    ids = canonical(array(rows[id])) if rows.num_rows else pa.array([], pa.string())
    if ids.null_count:
        raise DataError(
            f"expected an id in every row of {id!r} in {where}, got {ids.null_count} without; "
            "fill them in, or name another column"
        )
    return ids


def _fingerprints(saved: Mapping[str, Any], record: Record) -> list[Mapping[str, Any]]:
    return [saved["fingerprint"], *(call["fingerprint"] for call in record["calls"])]
