"""Decisions on new rows as a table to hand on: CSV, JSON lines or Parquet."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairsaoml.core.errors import ConfigError
from fairsaoml.files import write_bytes
from fairsaoml.runs.predict import Prediction
from fairsaoml.streams.table.reading import need

__all__ = ["check_ending", "decision_table", "to_bytes", "write_decisions"]

REASONS = 3  # columns that are named for each row
DIGITS = 6  # of a probability
ENDINGS = (".csv", ".jsonl", ".parquet", ".pq")


def decision_table(predicted: Prediction, keep: Sequence[str] = ()) -> Any:
    """One row per decision: kept columns, probability, decision in the label's words, and why.

    With an explanation also `threshold`, the probability that the row needed; `without_fairness`,
    the one it would have needed; `moved_by:A`, how much fairness by attribute A moved it; and
    `because`, the columns that counted most, with their parts of the log-odds.

    Raises DataError if a column to keep is not there.
    """
    need(keep, predicted.table.column_names, "the new rows")
    rows = len(predicted.scores)
    columns: dict[str, Any] = {"row": np.arange(rows)}
    columns |= {name: predicted.table[name] for name in keep}
    names = np.array(predicted.labels, object)
    columns["score"] = np.round(predicted.scores, DIGITS)
    columns["prediction"] = pa.array(names[predicted.decisions.astype(int)], pa.string())
    why = predicted.explanation
    if why is not None and predicted.contribution is not None:
        columns["threshold"] = _rounded(why.threshold)
        columns["without_fairness"] = _rounded(np.full(rows, why.plain_threshold))
        for name in predicted.attributes:
            own = [f"[{name}=" in constraint for constraint in predicted.constraints]
            columns[f"moved_by:{name}"] = _rounded(why.moved_by[:, own].sum(axis=1))
        columns["because"] = [_reasons(predicted.columns, row) for row in predicted.contribution]
    return pa.table(columns)


def _rounded(values: Any) -> np.ndarray:
    return np.round(np.asarray(values, dtype=np.float64), DIGITS)


def _reasons(columns: Sequence[str], contribution: np.ndarray) -> str:
    """The columns that counted most, largest first.

    >>> _reasons(["age", "debt", "job"], np.array([-0.5, 2.0, 0.0]))
    'debt +2.00, age -0.50'
    """
    largest = np.argsort(-np.abs(contribution), kind="stable")[:REASONS]
    return ", ".join(f"{columns[at]} {contribution[at]:+.2f}" for at in largest if contribution[at])


def check_ending(path: Path) -> None:
    """Refuse a file whose ending does not say what it is to hold."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(
            f"expected a file ending in {', '.join(ENDINGS)}, got {path.name!r}; rename it"
        )


def to_bytes(table: Any, ending: str = ".csv") -> bytes:
    """A table as the content of a file with this ending."""
    if ending == ".jsonl":
        lines = (json.dumps(row, default=str) + "\n" for row in table.to_pylist())
        return "".join(lines).encode()
    if ending == ".csv":
        text = io.StringIO()
        columns = [column.to_pylist() for column in table.columns]
        rows = zip(*columns, strict=True)
        csv.writer(text, lineterminator="\n").writerows([table.column_names, *rows])
        return text.getvalue().encode()
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def write_decisions(table: Any, path: Path) -> None:
    """Write a table of decisions, in the format of the file's ending."""
    check_ending(path)
    write_bytes(path, to_bytes(table, path.suffix.lower()))
