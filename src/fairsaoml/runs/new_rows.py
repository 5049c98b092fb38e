"""Which rows a run has not learned yet: by the digest of what it has read, and by their ids."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import DataError
from fairsaoml.runs.folder import read_spec
from fairsaoml.runs.learned import kept_table, read_record
from fairsaoml.runs.predictions import read_parquet
from fairsaoml.runs.spec import table_path
from fairsaoml.streams.table.columns import array, canonical
from fairsaoml.streams.table.reading import Source, open_source, read_table
from fairsaoml.streams.table.survey import Fingerprint, known_beginning, unknown_from

__all__ = ["find_new_rows", "new_rows_of_the_table"]


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
