"""Decisions on new rows by what a run has learned, as a table to hand on: CSV, JSON, Parquet."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairsaoml.core.errors import ConfigError
from fairsaoml.core.types import Explanation
from fairsaoml.files import write_bytes
from fairsaoml.runs.saved import name_service
from fairsaoml.serve.model import RunModel, probability
from fairsaoml.streams.table.reading import need, read_table

REASONS = 3  # columns that are named for each row
DIGITS = 6  # of a probability
ENDINGS = (".csv", ".jsonl", ".parquet", ".pq")


class Prediction(NamedTuple):
    """What a run says of new rows."""

    scores: np.ndarray  # (row,) calibrated probability of a positive label
    decisions: np.ndarray  # (row,) whether it is decided positive
    notes: tuple[str, ...]  # what was odd about the rows
    table: Any  # the rows as they came
    model: RunModel
    explanation: Explanation | None = None


def predict_rows(
    folder: Path, file: Path, *, seed: int | None = None, explain: bool = False
) -> Prediction:
    """Score new rows by what a run has learned. Nothing but the run's folder is needed.

    Args:
        folder: The run's folder.
        file: New rows, CSV or Parquet, with the columns that the run learned from. A run that is
            `aware` takes the rows' groups from their sensitive columns, where they are there.
        seed: Each seed of a run is a model of its own; by default the first seed is used.
        explain: Say why, too.

    Raises:
        ConfigError: The run has no such seed, or its learner explains nothing.
        DataError: The file lacks a column, or holds what is no number where one is expected.
        RunError: The folder holds no run, or one that has learned nothing yet.
    """
    model = RunModel(folder, seed=seed)
    online = model.online
    name_service(folder, online.round)
    if explain and not online.explains:
        raise ConfigError(f"{online.learner} explains no decisions; leave out --explain")
    table = read_table(file)
    x = model.encode(table, str(file))
    notes = model.notes_ if len(x) else (*model.notes_, f"{file} has a header and no rows")
    aware = getattr(online.config, "aware", False) and model.encoder is not None
    group = model.codes(table) if aware else None
    if explain and len(x):
        scores, margins, why = online.explained(x, group)
    else:
        (scores, margins), why = online.scored(x, group), None
    return Prediction(probability(scores), margins > 0, notes, table, model, why)


def decision_table(predicted: Prediction, keep: Sequence[str] = ()) -> Any:
    """One row per decision: kept columns, probability, decision in the label's words, and why.

    With an explanation also `threshold`, the probability that the row needed; `without_fairness`,
    the one it would have needed; `moved_by:A`, how much fairness by attribute A moved it; and
    `because`, the columns that counted most, with their parts of the log-odds.

    Raises DataError if a column to keep is not there.
    """
    need(keep, predicted.table.column_names, "the new rows")
    rows, model = len(predicted.scores), predicted.model
    columns: dict[str, Any] = {"row": np.arange(rows)}
    columns |= {name: predicted.table[name] for name in keep}
    columns["score"] = np.round(predicted.scores, DIGITS)
    words = np.array([model.label.negative, model.label.positive], object)
    decided = words[predicted.decisions.astype(int)]
    columns["prediction"] = pa.array(decided, pa.string())
    why = predicted.explanation
    if why is not None:
        columns["threshold"] = _rounded(why.threshold)
        columns["without_fairness"] = _rounded(np.full(rows, why.plain_threshold))
        for name in model.groups_:
            own = [f"[{name}=" in constraint for constraint in model.constraints_]
            columns[f"moved_by:{name}"] = _rounded(why.moved_by[:, own].sum(axis=1))
        names, parts = _of_columns(model, why.contribution)
        columns["because"] = [_reasons(names, row) for row in parts]
    return pa.table(columns)


def _of_columns(model: RunModel, contribution: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The table's columns, and what each counts: what its features count together."""
    columns = model.encoder.columns if model.encoder else ()
    if not columns:
        return list(model.stream.schema.features), contribution
    begins = np.cumsum([0, *(len(column.features) for column in columns[:-1])])
    return [column.name for column in columns], np.add.reduceat(contribution, begins, axis=1)


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
    write_bytes(path, to_bytes(table, path.suffix.lower()))
