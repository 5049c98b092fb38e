"""What a run's folder keeps of the calls of `fairsaoml learn`, and which rows are new to it.

It keeps a record of the calls, their rows and ids. Rows that were learned are known by the digest
of what was read, and by their ids.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairsaoml.core.errors import DataError, RunError
from fairsaoml.files import read_json, replacing, seal_of, write_text
from fairsaoml.runs.folder import read_spec
from fairsaoml.runs.predictions import read_parquet
from fairsaoml.runs.spec import table_path
from fairsaoml.streams.table.columns import array, canonical
from fairsaoml.streams.table.reading import Source, open_source, read_table
from fairsaoml.streams.table.survey import Fingerprint, known_beginning, unknown_from

RECORD, KEPT = "learned.json", "learned"


def read_record(folder: Path) -> dict[str, Any]:
    """Return the calls of `learn` so far; RunError where it was changed since."""
    if (folder / KEPT).is_symlink():
        raise RunError(f"expected a folder at {folder / KEPT}, found a link; remove it")
    if not (folder / RECORD).exists():
        return {"id": None, "calls": []}
    try:
        content = read_json(folder / RECORD)
        whole = content.pop("sha256") == seal_of(content)
    except (ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise RunError(
            f"{folder / RECORD} is not what was written; put it back: it says what was learned"
        )
    return content


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the calls down, sealed."""
    sealed = {**record, "sha256": seal_of(record)}
    write_text(folder / RECORD, json.dumps(sealed, indent=2, allow_nan=False) + "\n")


def kept_table(folder: Path, name: str, call: int) -> Path:
    """Return where a table of a call is kept."""
    return folder / KEPT / f"{name}-{call:04d}.parquet"


def undo_folder(folder: Path, call: int) -> Path:
    """Return where the checkpoint is that a call is taken back to."""
    return folder / KEPT / f"undo-{call:04d}"


def write_kept(path: Path, table: Any) -> None:
    """Keep a table."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def new_rows_of_the_table(folder: Path) -> tuple[Path, int | None]:
    """Return where a run's table is and how many rows it has that were never learned.

    None where it does not begin with the rows that were. Raises DataError where it is gone.
    """
    saved = read_spec(folder)["stream"]
    path, known = table_path(saved, folder), fingerprints(saved, read_record(folder))
    rows = read_table(path, saved["fingerprint"]["columns"])
    begins = unknown_from(rows, known)
    return path, rows.num_rows - begins if begins else None


def find_new_rows(
    folder: Path, saved: Mapping[str, Any], record: Mapping[str, Any], given: Source, id: str | None
) -> tuple[Any, dict[str, Any], dict[int, Any]]:
    """The rows that were not learned before, the fingerprint of all, and ids to keep, by call."""
    columns = list(saved["fingerprint"]["columns"])
    wanted = dict.fromkeys(columns if id is None else [*columns, id])
    where = "the rows" if given.path is None else str(given.path)
    rows = read_table(given, wanted, where)
    begins = unknown_from(rows.select(columns), fingerprints(saved, record))
    fingerprint = Fingerprint()
    fingerprint.add(rows.select(columns))
    if id is None:
        return rows.slice(begins), fingerprint.to_json(), {}
    calls, ids = len(record["calls"]), _ids(rows, id, where)
    keep = {calls + 1: ids}
    if record["id"] is None:
        keep[0] = _own_ids(folder, saved, id)
        known = pc.is_in(ids, value_set=keep[0])
    else:
        paths = [kept_table(folder, "ids", call) for call in range(calls + 1)]
        old = [array(read_parquet(path)["id"]) for path in paths if path.exists()]
        known = pc.is_in(ids, value_set=pa.concat_arrays(old))
    first = np.zeros(len(ids), bool)
    first[np.unique(ids.to_numpy(zero_copy_only=False), return_index=True)[1]] = True
    fresh = ~known.to_numpy(zero_copy_only=False) & first & (np.arange(len(ids)) >= begins)
    return rows.filter(pa.array(fresh)).select(columns), fingerprint.to_json(), keep


def _own_ids(folder: Path, saved: Mapping[str, Any], id: str) -> Any:
    """The ids of the rows that the run began with, as far as its table still has them."""
    own, columns = saved["fingerprint"], list(saved["fingerprint"]["columns"])
    try:
        opened = open_source(table_path(saved, folder)).first(own["rows"])
        rows = read_table(opened, dict.fromkeys([id, *columns]), str(opened.path))
        if known_beginning(rows.select(columns), [own]) == own["rows"]:
            return _ids(rows, id, str(opened.path))
        reason = "the table has changed"
    except DataError as error:
        reason = str(error)
    warnings.warn(
        f"the ids of the rows that the run began with are not known ({reason}): any of them that "
        "come again are learned again",
        stacklevel=4,
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


def fingerprints(saved: Mapping[str, Any], record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [saved["fingerprint"], *(call["fingerprint"] for call in record["calls"])]
