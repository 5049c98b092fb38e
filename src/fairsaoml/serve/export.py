"""A model that was trained in Python as a run's folder: for `predict`, `learn` and `serve`."""

from pathlib import Path

import jax
import numpy as np

from fairsaoml.files import write_text
from fairsaoml.runs.checkpoint import save_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, prepared, write_spec
from fairsaoml.runs.saved import manifest_of
from fairsaoml.runs.spec import RunSpec, Setup
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.encoder import Encoder

__all__ = ["write_run"]

NAME = "python"  # of the stream: rows that were passed in Python


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
        cut={
            **dict.fromkeys(("every", "time", "format", "origin", "per_second", "domain")),
            "rows": task_rows,
        },
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
