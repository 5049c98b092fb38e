"""A run's folder without a run: for `predict`, `learn` and `serve`.

It holds a model that was trained in Python, or one that has learned nothing yet, made from a
description of the rows that will come.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fairsaoml.core.errors import DataError
from fairsaoml.files import read_json, write_text
from fairsaoml.learners import registry
from fairsaoml.runs.checkpoint import save_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, prepared, write_spec
from fairsaoml.runs.saved import manifest_of
from fairsaoml.runs.spec import RunSpec, Setup
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.encoder import Categorical, Encoder, Numeric
from fairsaoml.streams.table.groups import Sensitive
from fairsaoml.streams.table.roles import Label

NAME = "python"  # of the stream: rows that were passed in Python
NO_CUT = dict.fromkeys(("every", "time", "format", "origin", "per_second", "domain"))
FORM = (
    '{"label": {"hired": ["no", "yes"]}, "sensitive": {"sex": ["f", "m"]}, "columns": {"age": '
    '{"mean": 40, "spread": 12}, "job": ["clerk", "nurse"]}}'
)


def write_run(
    folder: Path,
    online: OnlineLearner,
    encoder: Encoder,
    *,
    task_rows: int,
    force: bool,
    command: str = "model.save_run(folder)",
) -> None:
    """Write a learner and the coding of its rows as a run that can go on.

    The rounds learned in Python are not in its journal, which begins with the first one after.

    Args:
        folder: a new one.
        online: what was learned.
        encoder: how rows are read, label and groups included.
        task_rows: rows of a task that `learn` will cut.
        force: replace the run that the folder holds.
        command: what wrote it.

    Raises:
        RunError: the folder cannot be used.
    """
    columns = [encoder.label.column] if encoder.label else []
    columns += [name for role in encoder.sensitive for name in role.columns]
    columns += [column.name for column in encoder.columns]
    stream = Stream(
        name=NAME,
        schema=encoder.schema,
        tasks=lambda seed: iter(()),
        encoder=encoder.to_json(),
        fingerprint={"rows": 0, "columns": dict.fromkeys(columns, ""), "digest": ""},
        cut=NO_CUT | {"rows": task_rows},
    )
    config = online.config.to_dict()
    spec = RunSpec(
        stream=NAME, learner=online.learner, learner_settings=config, seeds=(online.seed,)
    )
    content = {
        **spec.to_json(Setup.of(spec, stream, config)),
        "name": online.learner,
        "command": command,
        "save_predictions": False,
        "before": online.round,  # rounds that are not in the journal
    }
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.device_get(online.state))
    with prepared(folder, force=force):
        write_spec(folder, content)
        write_text(folder / ROUNDS, "")
        save_checkpoint(folder / CHECKPOINT, online.round, states, manifest_of(content))


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
