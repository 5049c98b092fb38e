"""Scores and decisions for new rows, from what a run has learned."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Explanation, State
from fairsaoml.evaluate.compilation import compiled_for
from fairsaoml.evaluate.round import shown_by
from fairsaoml.evaluate.seeds import bucket
from fairsaoml.runs.checkpoint import Checkpoint
from fairsaoml.runs.saved import load_run, name_service
from fairsaoml.runs.spec import RunSpec
from fairsaoml.streams.stream import LARGEST_VALUE, Stream
from fairsaoml.streams.table.columns import numbers
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.reading import need, read_table
from fairsaoml.streams.table.stream import encode_groups, encode_rows

__all__ = ["Prediction", "encoded_rows", "one_seed", "predict_rows"]


class Prediction(NamedTuple):
    """What a run says of new rows."""

    scores: np.ndarray  # (row,) calibrated probability of a positive label
    decisions: np.ndarray  # (row,) whether it is decided positive
    notes: tuple[str, ...]  # what was odd about the rows
    table: Any  # the rows as they came
    labels: tuple[str, str]  # the label's own names, negative and positive
    explanation: Explanation | None = None
    constraints: tuple[str, ...] = ()  # in the order of `explanation.moved_by`
    attributes: tuple[str, ...] = ()  # whose fairness they are
    columns: tuple[str, ...] = ()  # the table's columns, in the order of `contribution`
    contribution: np.ndarray | None = None  # (row, column) part of the logit


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
    spec, setup, checkpoint = load_run(folder)
    name_service(folder, checkpoint.round)
    learner = setup.learner
    if explain and learner.explain is None:
        raise ConfigError(f"{spec.learner} explains no decisions; leave out --explain")
    _, state = one_seed(spec, checkpoint, seed)
    table = read_table(file)
    x, notes = encoded_rows(setup.stream, table, str(file))
    saved = setup.stream.encoder
    encoder = None if saved is None else Encoder.from_json(saved)
    label = encoder.label if encoder else None
    labels = (label.negative, label.positive) if label else ("0", "1")
    rows = len(x)
    if not rows:
        notes = (*notes, f"{file} has a header and no rows")
        return Prediction(np.zeros(0), np.zeros(0, bool), notes, table, labels)
    room = ((0, bucket(rows) - rows), (0, 0))
    padded, group = np.pad(x, room), None
    if setup.config.get("aware") and saved is not None:
        group = np.pad(encode_groups(saved, table), room)
    shown = compiled_for(learner, partial(shown_by, learner))(state, padded, group)
    scores = np.asarray(shown.scores)[:rows].astype(np.float64)
    decisions = np.asarray(shown.margins)[:rows] > 0
    predicted = Prediction(1 / (1 + np.exp(-scores)), decisions, notes, table, labels)
    if learner.explain is None or not explain:
        return predicted
    why = jax.tree.map(np.asarray, compiled_for(learner, learner.explain)(state, padded, group))
    columns, place = _columns(encoder, setup.stream)
    contribution = np.zeros((rows, len(columns)))
    np.add.at(contribution.T, place, why.contribution[:rows].T)
    return predicted._replace(
        explanation=why._replace(threshold=why.threshold[:rows], moved_by=why.moved_by[:rows]),
        constraints=tuple(constraint.name for constraint in setup.problem.constraints),
        attributes=tuple(attribute.name for attribute in setup.stream.schema.attributes),
        columns=columns,
        contribution=contribution,
    )


def _columns(encoder: Encoder | None, stream: Stream) -> tuple[tuple[str, ...], np.ndarray]:
    """The table's columns, and for each encoded feature the place of its column among them."""
    if encoder is None:
        names = stream.schema.features
        return names, np.arange(len(names))
    widths = [len(column.features) for column in encoder.columns]
    names = tuple(column.name for column in encoder.columns)
    return names, np.repeat(np.arange(len(widths)), widths)


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
        features = [_numbers(table, name, where) for name in stream.schema.features]
        x, notes = np.stack(features, axis=1), ()
    broken = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if broken.size:
        raise DataError(
            f"expected finite numbers, got NaN or infinity in {broken.size} rows of {where}, "
            f"the first is row {broken[0]}; fill them in or leave the rows out"
        )
    return np.clip(x, -LARGEST_VALUE, LARGEST_VALUE), notes


def _numbers(table: Any, name: str, where: str) -> np.ndarray:
    """A column that is numbers already, as they stand; a gap is NaN."""
    read = numbers(table[name])
    if read.unreadable > read.infinite:
        raise DataError(
            f"expected numbers in column {name!r} of {where}, got words ({read.example!r}); "
            "give the columns as the run has learned from them"
        )
    return read.values.astype(np.float32)
