"""Scores and decisions for new rows, from what a run has learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import State
from fairsaoml.evaluate.prequential import bucket
from fairsaoml.runs.checkpoint import Checkpoint
from fairsaoml.runs.runner import load_run
from fairsaoml.runs.spec import RunSpec
from fairsaoml.streams.stream import LARGEST_VALUE, Stream
from fairsaoml.streams.table.reading import need, read_table
from fairsaoml.streams.table.stream import encode_groups, encode_rows

__all__ = ["encoded_rows", "one_seed", "predict_rows"]


def predict_rows(
    folder: Path, file: Path, *, seed: int | None = None
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Score new rows by what a run has learned. Nothing but the run's folder is needed.

    Args:
        folder: The run's folder.
        file: New rows, CSV or Parquet, with the columns that the run learned from.
        seed: Each seed of a run is a model of its own; by default the first seed is used.

    Returns:
        The calibrated probability of a positive label for each row, the decision for each row,
        and notes on what was odd about the rows. A run that is `aware` takes the rows' groups from
        their sensitive columns, where they are there.

    Raises:
        ConfigError: The run has no such seed.
        DataError: The file lacks a column, or holds what is no number where one is expected.
        RunError: The folder holds no run, or one that has learned nothing yet.
    """
    spec, setup, checkpoint = load_run(folder)
    _, state = one_seed(spec, checkpoint, seed)
    table = read_table(file)
    x, notes = encoded_rows(setup.stream, table, str(file))
    if not len(x):
        return np.zeros(0), np.zeros(0, bool), (*notes, f"{file} has a header and no rows")
    rows = len(x)
    room = ((0, bucket(rows) - rows), (0, 0))
    padded, group = np.pad(x, room), None
    if setup.config.get("aware") and setup.stream.encoder is not None:
        group = np.pad(encode_groups(setup.stream.encoder, table), room)
    scores = np.asarray(jax.jit(setup.learner.scores)(state, padded))[:rows].astype(np.float64)
    decisions = np.asarray(jax.jit(setup.learner.margins)(state, padded, group))[:rows] > 0
    return 1 / (1 + np.exp(-scores)), decisions, notes


def one_seed(spec: RunSpec, checkpoint: Checkpoint, seed: int | None) -> tuple[int, State]:
    """Return one of a run's seeds, by default the first, and its state."""
    if seed is not None and seed not in spec.seeds:
        seeds = ", ".join(map(str, spec.seeds))
        raise ConfigError(f"expected one of the run's seeds ({seeds}), got {seed}")
    index = 0 if seed is None else list(spec.seeds).index(seed)
    return spec.seeds[index], jax.tree.map(lambda leaf: leaf[index], checkpoint.state)


def encoded_rows(stream: Stream, table: Any, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return an Arrow table's rows as a run's learner sees them, and notes on what was odd.

    Args:
        stream: The run's, with its encoder if it has one.
        table: Rows with the columns that the run learned from.
        where: What the table is called in an error.

    Raises:
        DataError: A column is missing, or holds what is no number where one is expected.
    """
    if stream.encoder is not None:
        x, notes = encode_rows(stream.encoder, table)
    else:
        need(stream.schema.features, table.column_names, where)
        x, notes = _numbers(table, stream.schema.features, where), ()
    broken = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if broken.size:
        raise DataError(
            f"expected finite numbers, got NaN or infinity in {broken.size} rows of {where}, "
            f"the first is row {broken[0]}; fill them in or leave the rows out"
        )
    return np.clip(x, -LARGEST_VALUE, LARGEST_VALUE), notes


def _numbers(table: Any, names: Sequence[str], where: str) -> np.ndarray:
    """Columns that are numbers already, as they stand; a gap is NaN."""
    columns = []
    for name in names:
        values = table[name]
        try:
            if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
                values = pc.cast(values, pa.string())
                values = pc.if_else(pc.equal(values, ""), None, values)
            numbers = pc.cast(values, pa.float64(), safe=False)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"expected numbers in column {name!r} of {where}, got words ({error}); "
                "give the columns as the run has learned from them"
            ) from None
        columns.append(numbers.to_numpy().astype(np.float32))
    return np.stack(columns, axis=1)
