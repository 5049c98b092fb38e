"""A run's memory on disk: safetensors for the arrays, a JSON manifest for the rest. Never pickle.

The state is written aside and renamed, then the manifest; the previous pair stays until then. A
file that is damaged or cut is known by its checksum, and the previous one is used instead.
"""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from fairsaoml.errors import RunError
from fairsaoml.runs.files import read_json, write_bytes, write_json
from fairsaoml.types import State

__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]

CHECKPOINT_SCHEMA = 1
CURRENT, PREVIOUS = "manifest.json", "previous.json"


class Checkpoint(NamedTuple):
    """A state and the round it was reached after."""

    round: int
    state: State


def save_checkpoint(folder: Path, round: int, state: State, about: dict[str, Any]) -> None:
    """Keep a state; the one before stays until this one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    named = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    content = save_arrays(
        {jax.tree_util.keystr(path): np.ascontiguousarray(leaf) for path, leaf in named}
    )
    file = f"state-{round:08d}.safetensors"
    write_bytes(folder / file, content)
    if _file_of(folder / CURRENT):  # a damaged one must not push out a whole one
        os.replace(folder / CURRENT, folder / PREVIOUS)
    write_json(
        folder / CURRENT,
        {
            "schema": CHECKPOINT_SCHEMA,
            "round": round,
            "file": file,
            "sha256": hashlib.sha256(content).hexdigest(),
            **about,
        },
    )
    wanted = {_file_of(folder / name) for name in (CURRENT, PREVIOUS)}
    for stale in folder.glob("state-*.safetensors"):
        if stale.name not in wanted:
            stale.unlink()


def load_checkpoint(folder: Path, like: State) -> Checkpoint | None:
    """The newest whole state, in the structure of `like`; None where none was ever kept."""
    problems = []
    for path in _manifests(folder):
        try:
            return _load(folder, read_json(path), like)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as problem:
            problems.append(f"{path.name}: {problem}")
            warnings.warn(
                f"the checkpoint of {path.name} is damaged ({problem}); trying the one before",
                stacklevel=2,
            )
    if problems:
        raise RunError(f"no whole checkpoint in {folder}: {'; '.join(problems)}; use --force")
    return None


def _file_of(manifest: Path) -> str | None:
    """The state file that a manifest speaks of, if it can be read."""
    try:
        return read_json(manifest)["file"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _manifests(folder: Path) -> list[Path]:
    return [folder / name for name in (CURRENT, PREVIOUS) if (folder / name).exists()]


def _load(folder: Path, manifest: dict[str, Any], like: State) -> Checkpoint:
    if manifest["schema"] > CHECKPOINT_SCHEMA:
        raise RunError(
            f"expected a checkpoint of schema {CHECKPOINT_SCHEMA} or older, got "
            f"{manifest['schema']}; it was written by a newer fairsaoml: upgrade to go on"
        )
    content = (folder / manifest["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise ValueError(f"{manifest['file']} is not what was written")
    arrays = load_arrays(content)
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = [arrays[jax.tree_util.keystr(path)] for path, _ in paths]
    return Checkpoint(round=manifest["round"], state=jax.tree.unflatten(structure, leaves))
