"""Scores and decisions for new rows, from what a run has learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.evaluate.prequential import bucket
from fairsaoml.runs.runner import load_run
from fairsaoml.streams.stream import LARGEST_VALUE
from fairsaoml.streams.table.reading import need, read_table
from fairsaoml.streams.table.stream import encode_rows

__all__ = ["predict_rows"]


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
        and notes on what was odd about the rows.

    Raises:
        ConfigError: The run has no such seed.
        DataError: The file lacks a column, or holds what is no number where one is expected.
        RunError: The folder holds no run, or one that has learned nothing yet.
    """
    spec, setup, checkpoint = load_run(folder)
    if seed is not None and seed not in spec.seeds:
        seeds = ", ".join(map(str, spec.seeds))
        raise ConfigError(f"expected one of the run's seeds ({seeds}), got {seed}")
    index = 0 if seed is None else list(spec.seeds).index(seed)
    state = jax.tree.map(lambda leaf: leaf[index], checkpoint.state)
    table = read_table(file)
    if setup.stream.encoder is not None:
        x, notes = encode_rows(setup.stream.encoder, table)
    else:
        need(setup.stream.schema.features, table.column_names, str(file))
        x, notes = _numbers(table, setup.stream.schema.features, file), ()
    if not len(x):
        return np.zeros(0), np.zeros(0, bool), (*notes, f"{file} has a header and no rows")
    broken = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if broken.size:
        raise DataError(
            f"expected finite numbers, got NaN or infinity in {broken.size} rows of {file}, "
            f"the first is row {broken[0]}; fill them in or leave the rows out"
        )
    x = np.clip(x, -LARGEST_VALUE, LARGEST_VALUE)
    rows = len(x)
    padded = np.pad(x, ((0, bucket(rows) - rows), (0, 0)))
    scores = np.asarray(jax.jit(setup.learner.scores)(state, padded))[:rows].astype(np.float64)
    decisions = np.asarray(jax.jit(setup.learner.margins)(state, padded))[:rows] > 0
    return 1 / (1 + np.exp(-scores)), decisions, notes


def _numbers(table: Any, names: Sequence[str], file: Path) -> np.ndarray:
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
                f"expected numbers in column {name!r} of {file}, got words ({error}); "
                "give the columns as the run has learned from them"
            ) from None
        columns.append(numbers.to_numpy().astype(np.float32))
    return np.stack(columns, axis=1)
