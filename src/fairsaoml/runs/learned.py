"""What a run's folder keeps of the calls of `fairsaoml learn`: a record, their rows and ids."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fairsaoml.core.errors import RunError
from fairsaoml.files import read_json, replacing, seal_of, write_text

__all__ = ["KEPT", "kept_table", "read_record", "undo_folder", "write_kept", "write_record"]

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
