"""A model that has learned nothing yet, from a description of the rows that will come."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.files import read_json
from fairsaoml.learners import registry
from fairsaoml.serve.export import write_run
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.streams.table.encoder import Categorical, Encoder, Numeric
from fairsaoml.streams.table.groups import Sensitive
from fairsaoml.streams.table.roles import Label

__all__ = ["encoder_of", "write_new"]

FORM = (
    '{"label": {"hired": ["no", "yes"]}, "sensitive": {"sex": ["f", "m"]}, "columns": {"age": '
    '{"mean": 40, "spread": 12}, "job": ["clerk", "nurse"]}}'
)


def write_new(folder: Path, schema: Path, *, task_rows: int) -> None:
    """Write a run's folder that has learned nothing: every probability is 1/2 until labels come.

    Args:
        folder: a new one.
        schema: a JSON file, as `encoder_of` reads it; `learner` and `settings` may be in it.
        task_rows: rows of a task.

    Raises:
        ConfigError: an unknown learner or setting.
        DataError: no such schema.
        RunError: the folder cannot be used.
    """
    try:
        content = read_json(schema)
    except (OSError, ValueError) as problem:
        raise DataError(f"expected a schema at {schema}, got: {problem}; write {FORM}") from None
    encoder = encoder_of(content)
    learner = content.get("learner", registry.DEFAULT)
    online = OnlineLearner(encoder.schema, learner, content.get("settings"))
    command = f"fairsaoml serve {folder} --schema {schema}"
    write_run(folder, online, encoder, task_rows=task_rows, force=False, command=command)


def encoder_of(content: Any) -> Encoder:
    """Return the coding of rows that a schema describes.

    Columns of numbers have a mean and a spread, columns of words a list of them; the label has two
    values, the second one positive.

    Raises:
        DataError: something is missing, or of another form.

    >>> import json
    >>> encoder_of(json.loads(FORM)).features
    ('age', 'age=missing', 'job=nurse')
    """
    try:
        [(label, (negative, positive))] = content["label"].items()
        encoder = Encoder(
            columns=tuple(_column(*item) for item in content["columns"].items()),
            label=Label(column=label, positive=_word(positive), negative=_word(negative)),
            sensitive=tuple(
                Sensitive(column=name, levels=_words(levels), fold=True)
                for name, levels in content["sensitive"].items()
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"expected a schema such as {FORM}, got one without {problem}") from None
    both = {label, *content["sensitive"]} & content["columns"].keys()
    if both or not encoder.columns:
        got = f"{sorted(both)} as both" if both else "no columns"
        raise DataError(f"expected columns besides label and groups, got {got}; {FORM}")
    return encoder


def _column(name: str, form: Any) -> Numeric | Categorical:
    if isinstance(form, Mapping):
        center, scale = float(form["mean"]), float(form["spread"])
        if not (math.isfinite(center) and 0 < scale < math.inf):
            raise ValueError(f"a mean and a spread above 0 of {name!r}")
        return Numeric(name=name, center=center, scale=scale, flag=True)
    return Categorical(name=name, levels=_words(form), share=0.5, fold=True)


def _words(values: Any) -> tuple[str, ...]:
    words = tuple(map(_word, values))
    if isinstance(values, str) or not 2 <= len(set(words)) == len(words):
        raise ValueError(f"two different values or more in {values!r}")
    return words


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"words in place of {value!r}")
    return value
