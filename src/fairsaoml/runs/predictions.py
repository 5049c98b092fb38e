"""`predictions.parquet`: every decision of a run, one row per seed, round and row.

Each round is a file of its own until the run is finished, so that a kill loses none.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairsaoml.core.types import Schema
from fairsaoml.evaluate.metrics import UNSEEN
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.files import make_folder, open_regular, replacing

PREDICTIONS, PARTS = "predictions.parquet", ".predictions"


class Predictions:
    """A writer that does nothing unless `asked`."""

    def __init__(self, folder: Path, schema: Schema, asked: bool) -> None:
        self._parts, self._file = folder / PARTS, folder / PREDICTIONS
        self._schema, self._asked = schema, asked
        if asked:
            make_folder(self._parts)

    def append(self, result: RoundResult, seeds: Sequence[int]) -> None:
        """Write the decisions of a round."""
        if not self._asked:
            return
        tables = []
        for seed, (task, scores, decisions) in zip(seeds, result.predictions, strict=True):
            rows = len(task.y)
            columns: dict[str, Any] = {
                "seed": np.full(rows, seed, np.int32),
                "round": np.full(rows, result.round, np.int32),
                "row": np.arange(rows, dtype=np.int32),
                "y": task.y.astype(np.int8),
            }
            for index, (name, levels) in enumerate(self._schema.attributes):
                names = np.array([*levels, UNSEEN], object)[task.group[:, index]]
                columns[f"group_{name}"] = pa.array(names, pa.string())
            columns["score"] = 1 / (1 + np.exp(-scores.astype(np.float64)))
            columns["prediction"] = decisions.astype(np.int8)
            tables.append(pa.table(columns))
        pq.write_table(pa.concat_tables(tables), self._parts / f"{result.round:08d}.parquet")

    def finish(self) -> None:
        """Join the rounds to those in the file."""
        if not self._asked:
            return
        parts = sorted(self._parts.glob("*.parquet"))
        before = [read_parquet(self._file)] if self._file.exists() else []
        # A run killed below has the complete file, but no longer all parts.
        done = pc.max(before[0]["round"]).as_py() if before else 0
        new = [read_parquet(part) for part in parts if int(part.stem) > done]
        if new:
            write_parquet(self._file, pa.concat_tables(before + new))
        for part in parts:
            part.unlink()
        self._parts.rmdir()

    def cut(self, after: int) -> None:
        """Remove what was written after a round."""
        if self._asked:
            self._parts.rmdir()
            whole = read_parquet(self._file)
            write_parquet(self._file, whole.filter(pc.less_equal(whole["round"], after)))


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table of ours, completely or not at all."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def read_parquet(path: Path) -> pa.Table:
    """Return the table in a file of ours; a link or a pipe in its place is refused."""
    with open(open_regular(path), "rb") as file:
        return pq.read_table(file)
