"""What a run has learned, as a live model: `fairsaoml.load(FOLDER)`.

Rows come as they are in the run's table, as a dataframe or as plain dictionaries; the run's own
encoder reads them. What is learned here stays in memory: `fairsaoml.learn` is what continues the
run in its folder.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError, RunError, warn
from fairsaoml.core.types import Task
from fairsaoml.evaluate.seeds import part_of
from fairsaoml.runs.folder import ROUNDS
from fairsaoml.runs.journal import read_rounds
from fairsaoml.runs.saved import load_run
from fairsaoml.serve.online import LearnerAttributes, OnlineLearner, one_at_a_time, require_finite
from fairsaoml.streams.stream import LARGEST_VALUE, Stream
from fairsaoml.streams.table import groups, reading, roles
from fairsaoml.streams.table.columns import numbers, typed
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.sensitive import sensitive_columns

# Of streams without a table.
PLAIN_LABEL = roles.Label(column="label", positive="1", negative="0", type="integer")


class RunModel(LearnerAttributes):
    """A run's model of one seed: it predicts, and learns from more rows.

    Parameters
    ----------
    folder
        The run's.
    seed
        Each seed of a run is a model of its own; by default the first.

    Attributes
    ----------
    classes_
        The label's two values; the second one is the positive. They are numbers or booleans where
        the label's column was one of these, and texts otherwise: in runs of before always.
    notes_
        What was odd about the last rows, in words.

    Raises
    ------
    ConfigError
        Where the run has no such seed.
    RunError
        Where the folder holds no run, or one that has learned nothing yet.
    """

    def __init__(self, folder: str | PathLike, *, seed: int | None = None) -> None:
        spec, setup, checkpoint = load_run(Path(folder))
        chosen = spec.seeds[0] if seed is None else seed
        if chosen not in spec.seeds:
            seeds = ", ".join(map(str, spec.seeds))
            raise ConfigError(f"expected one of the run's seeds ({seeds}), got {chosen}")
        stream, schema = setup.stream, setup.stream.schema
        state = part_of(checkpoint.state, spec.seeds.index(chosen))
        self.stream: Stream = stream
        self.online = OnlineLearner.resumed(
            schema, spec.learner, setup.config, seed=chosen, round=checkpoint.round, state=state
        )
        self.encoder = Encoder.from_json(stream.encoder) if stream.encoder else None  # of a table
        self.label = (self.encoder and self.encoder.label) or PLAIN_LABEL
        self.sensitive: tuple[groups.Protected, ...] = (
            self.encoder.sensitive
            if self.encoder
            else tuple(groups.Sensitive(column=name, levels=ls) for name, ls in schema.attributes)
        )
        self.notes_: tuple[str, ...] = ()
        self._unread: set[str] = set()  # columns of the last rows without one readable value
        self._warned: set[str] = set()
        self._journal = Path(folder) / ROUNDS

    @property
    def classes_(self) -> np.ndarray:
        return np.array(self.label.values)

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The columns that tell a row's groups."""
        return tuple(dict.fromkeys(name for role in self.sensitive for name in role.columns))

    @property
    def _learned(self) -> OnlineLearner:
        return self.online

    def _of_last_round(self, name: str) -> np.ndarray:
        """Return a figure of the last round, which was learned here or is in the run's journal."""
        online = self.online
        if online.info:
            return super()._of_last_round(name)
        for line in reversed(read_rounds(self._journal)):
            if (line["round"], line["seed"]) == (online.round, online.seed):
                return np.asarray(line[name])
        raise RunError(f"expected round {online.round} in {self._journal}, found none; learn one")

    def predict(self, rows: Any) -> np.ndarray:
        """Return the label decided for each row, one of `classes_`.

        Parameters
        ----------
        rows
            A dataframe (pandas, polars, pyarrow), a dictionary of columns, or a list of
            dictionaries, with the columns of the run's table. Label and sensitive columns are not
            looked at and may be missing.

        Raises
        ------
        DataError
            Where a column is missing or cannot be read.
        """
        decided = self.classes_[self.decide(rows).astype(int)]
        for name in self._unread - self._warned:
            warn(f"nothing in the column {name!r} is as the run knows it; see notes_")
        self._warned |= self._unread
        return decided

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Return calibrated probabilities, (row, class). Takes and raises what `predict` does."""
        positive = probability(self.online.scores(self.encode(rows)))
        return np.stack([1 - positive, positive], axis=1)

    def decision_function(self, rows: Any) -> np.ndarray:
        """Return how far each row is from the other decision; above 0 is positive."""
        return self.online.margins(self.encode(rows))

    def decide(self, rows: Any) -> np.ndarray:
        """Return which rows are decided positive, as booleans."""
        return self.decision_function(rows) > 0

    def encode(self, rows: Any, where: str = "the rows") -> np.ndarray:
        """Return rows as the learner sees them, (row, feature) float32; `where` is for errors."""
        table, names = rows_table(rows), self.stream.schema.features
        if self.encoder is not None:
            x, remarks = self.encoder.encode(table)
            self.notes_ = tuple(map(str, remarks))
            # A single odd value is a person's; a whole column of them is the table's.
            whole = (one.column for one in remarks if one.example and one.rows == len(x) > 1)
            self._unread = set(whole)
        else:
            reading.need(names, table.column_names, where)
            x = np.stack([_plain_numbers(table, name, where) for name in names], axis=1)
            self.notes_ = ()
        require_finite(x, f" of {where}")
        return np.clip(x, -LARGEST_VALUE, LARGEST_VALUE)

    @one_at_a_time
    def partial_fit(self, rows: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Learn from these rows as one task: one round, in memory only.

        Parameters
        ----------
        rows
            As in `predict`, with the label and the sensitive columns unless these are given apart.
        y
            A label for each row, where it is no column of `rows`.
        sensitive_features
            The sensitive columns, where they are no columns of `rows`.

        Returns
        -------
        The model itself.

        Raises
        ------
        DataError
            Where a column is missing or cannot be read; nothing is learned then.
        """
        table = self._with_groups(rows_table(rows), sensitive_features)
        if y is not None:
            table = _with_column(table, self.label.column, y)
        self.online.learn(self.task(table))
        return self

    def takes_label(self, label: Any) -> bool:
        """Whether `partial_fit` knows a label."""
        try:
            return bool(self._label_codes(typed([label]))[0] >= 0)
        except DataError:
            return False

    def check_groups(self, rows: Any, sensitive_features: Any) -> None:
        """Raise DataError where `partial_fit` would refuse the groups of these rows."""
        table = self._with_groups(rows_table(rows), sensitive_features)
        reading.need(self.sensitive_columns, table.column_names, "the rows")

    def _label_codes(self, column: Any) -> np.ndarray:
        """Return labels as codes; booleans are the numbers 0 and 1, and the reverse."""
        kind, pair = column.type, {self.label.negative, self.label.positive}
        if pa.types.is_boolean(kind) and pair == {"0", "1"}:
            column = column.cast(pa.int8())
        if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and pair == {"False", "True"}:
            no = pc.if_else(pc.equal(column, 0), "False", column.cast(pa.string()))
            column = pc.if_else(pc.equal(column, 1), "True", no)
        return self.label.codes(column)

    def _with_groups(self, table: Any, sensitive_features: Any) -> Any:
        """Return a table with sensitive columns that were given apart."""
        if sensitive_features is not None:
            given, columns = sensitive_columns(sensitive_features), self.sensitive_columns
            if not set(columns) <= given.keys() and len(given) == len(columns):
                given = dict(zip(columns, given.values(), strict=True))  # given without names
            for name, values in given.items():
                table = _with_column(table, name, values)
        return table

    def task(self, table: Any) -> Task:
        """Return labelled rows as a task; rows without a label are left out."""
        reading.need([self.label.column, *self.sensitive_columns], table.column_names, "the rows")
        y = self._label_codes(table[self.label.column])
        table, y = table.filter(pa.array(y >= 0)), y[y >= 0]
        if not len(y):
            raise DataError("expected rows with a label, got none; nothing was learned")
        return Task(x=self.encode(table), y=y.astype(np.float32), group=self.codes(table))

    def codes(self, table: Any) -> np.ndarray:
        """Return the groups of a table's rows, (row, attribute); unknown without their column."""
        codes = [
            role.codes(table).codes
            if set(role.columns) <= set(table.column_names)
            else np.full(len(table), len(role.levels), np.int32)
            for role in self.sensitive
        ]
        return np.stack(codes, axis=1) if codes else np.zeros((len(table), 0), np.int32)


def probability(logits: np.ndarray) -> np.ndarray:
    """Return the chance of a positive label.

    >>> probability(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.exp(-np.logaddexp(0.0, -logits))  # without SciPy, which is slow to import


def rows_table(rows: Any) -> Any:
    """Return rows in any form as an Arrow table: a dataframe, or plain dictionaries.

    >>> rows_table([{"age": 30}, {"age": 41, "sex": "f"}]).to_pydict()
    {'age': [30, 41], 'sex': [None, 'f']}
    """
    if isinstance(rows, Mapping):
        lone = any(isinstance(v, str) or not hasattr(v, "__len__") for v in rows.values())
        rows = [rows] if lone else pa.table({str(name): typed(v) for name, v in rows.items()})
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        rows = pa.table({name: typed([row.get(name) for row in rows]) for name in names})
    return reading.to_arrow(rows)


def _with_column(table: Any, name: str, values: Any) -> Any:
    """Return a table with a column added or replaced."""
    column = typed(values)
    if len(column) != table.num_rows:
        raise DataError(f"expected {table.num_rows} values of {name!r}, got {len(column)}")
    kept = table.drop_columns([name]) if name in table.column_names else table
    return kept.append_column(name, column)


def _plain_numbers(table: Any, name: str, where: str) -> np.ndarray:
    """A column that is numbers already, as they stand; a gap is NaN."""
    read = numbers(table[name])
    if read.unreadable > read.infinite:
        raise DataError(
            f"expected numbers in column {name!r} of {where}, got words ({read.example!r}); "
            "give the columns as the run has learned from them"
        )
    return read.values.astype(np.float32)
