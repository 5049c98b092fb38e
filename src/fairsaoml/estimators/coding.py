"""How a user's groups and features become numbers: fixed by the first task.

What comes later and does not fit has a defined place. A group never seen goes to the slot
`unseen`, which is counted and in no constraint (D7); a value far outside the first task's is cut
at five standard deviations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError, warn
from fairsaoml.streams.stream import LARGEST_VALUE
from fairsaoml.streams.table.columns import factor, require_flat, typed
from fairsaoml.streams.table.encoder import CLIP
from fairsaoml.streams.table.groups import Sensitive, fit_levels, known_by_column
from fairsaoml.streams.table.sensitive import UNNAMED, sensitive_columns


class Scaling(NamedTuple):
    """(x - center) / scale, cut at +-limit; in float64 until then, for a date is a large number.

    >>> rows = np.array([[1.0, 7.0], [3.0, 7.0]])
    >>> Scaling.of(rows).apply(np.array([[2.0, 7.0], [99.0, 8.0]])).tolist()
    [[0.0, 0.0], [5.0, 1.0]]
    """

    center: np.ndarray  # (feature,)
    scale: np.ndarray  # (feature,), 1 where the first task is constant
    limit: np.ndarray  # ()

    @classmethod
    def of(cls, x: np.ndarray) -> "Scaling":
        """Return the scaling by the rows' means and standard deviations, NaN left out."""
        known = np.isfinite(x)
        rows = np.maximum(known.sum(axis=0), 1)
        values = np.where(known, x, 0.0).astype(np.float64)
        center = values.sum(axis=0) / rows
        spread = np.sqrt((np.where(known, x - center, 0.0) ** 2).sum(axis=0) / rows)
        # A constant's spread is rounding, not a scale.
        constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(center)
        return cls(center=center, scale=np.where(constant, 1.0, spread), limit=np.array(CLIP))

    @classmethod
    def none(cls, features: int) -> "Scaling":
        """Return the scaling that leaves features as they are, cut where every stream is cut."""
        limit = np.array(LARGEST_VALUE)
        return cls(center=np.zeros(features), scale=np.ones(features), limit=limit)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return rows as a learner sees them, float32; a missing value becomes the mean."""
        scaled = (x - self.center) / self.scale
        scaled = np.where(np.isnan(scaled), 0.0, scaled)
        return np.clip(scaled, -self.limit, self.limit).astype(np.float32)


class Groups(NamedTuple):
    """The sensitive columns and their levels; no column where no sensitive feature is given."""

    columns: tuple[Sensitive, ...] = ()

    @classmethod
    def of(cls, table: Any, known: Any = None) -> "Groups":
        """Return the levels in a table and those that are known to come.

        Raises DataError where a column has one level only, or `known` does not fit the columns.

        >>> Groups.of(pa.table({"sex": ["m", "m"]}), known=["f"]).columns[0].levels
        ('f', 'm')
        """
        if table is None:
            return cls()
        names = table.column_names
        if known is not None and not isinstance(known, Mapping):
            if len(names) > 1:
                raise DataError(
                    f"expected known_groups by column, got one list for {', '.join(names)}; "
                    "give {column: [groups]}"
                )
            known = {names[0]: known}
        by_column = known_by_column(known or {}, names)
        sensitive = []
        for name in names:
            more = by_column.get(name, [])
            levels = [*dict.fromkeys(factor(table[name]).values.to_pylist() + more)]
            if len(levels) < 2:
                raise DataError(
                    f"expected two or more groups in the sensitive feature {name!r}, got one "
                    f"({', '.join(map(repr, levels)) or 'missing'}); give more rows at once, or "
                    "name the groups that are to come in known_groups"
                )
            column = pa.array(levels, pa.string()) if more else table[name]
            sensitive.append(fit_levels(name, column))
        return cls(tuple(sensitive))

    def codes(self, table: Any, rows: int) -> np.ndarray:
        """Return (row, attribute) integer codes, with a warning where groups are unknown.

        Raises DataError where the columns are not those of the first call.
        """
        table = self.checked(table)
        codes = np.zeros((rows, len(self.columns)), np.int32)
        for place, column in enumerate(self.columns):
            codes[:, place], _, unknown = column.codes(table)
            if unknown:
                warn(
                    f"sensitive feature {column.column!r}: {', '.join(map(repr, [*unknown][:5]))} "
                    "was not known from the first call; such rows are counted apart and are in no "
                    "constraint; name such groups in known_groups",
                )
        return codes

    def checked(self, table: Any) -> Any:
        """Return a table's columns in the order of the first call, None where it had none.

        Raises DataError where the columns are not those of the first call.
        """
        names = [column.column for column in self.columns]
        if (table is None) != (not names):
            raise DataError(
                f"expected sensitive_features ({', '.join(names)}) in every call, as in the first, "
                "got none; give a column in which the groups that are unknown are None"
                if names
                else "expected no sensitive_features, as in the first call, got some; fit anew to "
                "learn with groups"
            )
        if table is None:
            return None
        if set(table.column_names) == set(names):
            return table.select(names)
        unnamed = [UNNAMED.format(index) for index in range(len(names))]
        if unnamed in (table.column_names, names) and len(table.column_names) == len(names):
            return table.rename_columns(names)
        raise DataError(
            f"expected the sensitive features {', '.join(names)} of the first call, "
            f"got {', '.join(table.column_names)}"
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the columns as plain JSON."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, saved: Sequence[Mapping[str, Any]]) -> "Groups":
        """Return the groups that `to_json` wrote."""
        columns: list[dict[str, Any]] = [
            {key: tuple(part) if isinstance(part, list) else part for key, part in one.items()}
            for one in saved
        ]
        return cls(tuple(Sensitive(**one) for one in columns))


def sensitive_table(sensitive_features: Any) -> Any:
    """Return sensitive features, given in any form, as an Arrow table; None stays None.

    >>> sensitive_table(["f", "m"]).to_pydict()
    {'sensitive_feature_0': ['f', 'm']}
    >>> sensitive_table([("f", "old"), ("m", "young")]).to_pydict()
    {'sensitive_feature_0': ['f', 'm'], 'sensitive_feature_1': ['old', 'young']}
    """
    if sensitive_features is None:
        return None
    columns = sensitive_columns(sensitive_features)
    try:
        table = pa.table({name: typed(values) for name, values in columns.items()})
    except pa.ArrowInvalid as error:
        raise DataError(
            f"expected as many rows in every sensitive feature, got: {error}; give one group per "
            "row and column"
        ) from None
    require_flat(table, columns)
    return table


def plain(value: Any) -> Any:
    """Return a NumPy number, as a search over settings gives it, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
