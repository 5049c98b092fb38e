"""What a run's folder keeps of the calls of `fairsaoml learn`: a record, their rows and ids."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fairsaoml.core.errors import RunError
from fairsaoml.files import open_regular, read_json, replacing, seal_of, write_text

__all__ = [
    "KEPT",
    "kept_ids",
    "kept_table",
    "read_kept",
    "read_record",
    "undo_folder",
    "waiting_rows",
    "write_kept",
    "write_record",
]

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


def kept_table(folder: Path, name: str, number: int) -> Path:
    """Return where a table of a call is kept."""
    return folder / KEPT / f"{name}-{number:04d}.parquet"


def kept_ids(folder: Path, calls: int) -> list[Path]:
    """Return the files of all ids that are known."""
    paths = [kept_table(folder, "ids", number) for number in range(calls + 1)]
    return [path for path in paths if path.exists()]


def undo_folder(folder: Path, record: Mapping[str, Any]) -> Path:
    """Return where the checkpoint is that the last call is taken back to."""
    return folder / KEPT / f"undo-{len(record['calls']):04d}"


def waiting_rows(folder: Path, number: int) -> list[Any]:
    """Return the rows that a call has left for the next one."""
    path = kept_table(folder, "waiting", number)
    return [read_kept(path)] if path.exists() else []


def read_kept(path: Path) -> Any:
    """Return a table that was kept."""
    with open(open_regular(path), "rb") as file:
        return pq.read_table(file)


def write_kept(path: Path, table: Any) -> None:
    """Keep a table."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)
