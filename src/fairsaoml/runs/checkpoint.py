"""Learned states on disk: safetensors for the arrays, a JSON manifest for the rest. Never pickle.

The state is written first, then the manifest; the previous pair stays, to fall back on. A damaged
or truncated file, be it the state or the manifest, is recognised by its checksum, and the previous
pair is used instead.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from fairsaoml import files
from fairsaoml.core.errors import RunError, warn
from fairsaoml.core.types import State
from fairsaoml.runs.migrations import MIGRATIONS, Arrays, Manifest

CHECKPOINT_SCHEMA = 7
CURRENT, PREVIOUS = "manifest.json", "previous.json"
SEAL = "manifest_sha256"
DAMAGED = (OSError, ValueError, KeyError, TypeError)  # what reading a damaged file raises

Made = TypeVar("Made")


class Checkpoint(NamedTuple):
    """A state, the round it was reached after, and the rest of its manifest."""

    round: int
    state: State
    manifest: Manifest


def save_checkpoint(folder: Path, round: int, state: State, about: dict[str, Any]) -> None:
    """Save a state; the previous one stays until this one is complete.

    Args:
        folder: of checkpoints.
        round: after which the state was reached.
        state: any tree of arrays.
        about: plain JSON to keep in the manifest.
    """
    files.make_folder(folder)
    named = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    content = save_arrays(
        {jax.tree_util.keystr(path): np.asarray(leaf, order="C") for path, leaf in named}
    )
    checksum = hashlib.sha256(content).hexdigest()
    file = f"state-{round:08d}.safetensors"
    if file in _named_files(folder):
        # The same round, learned again: a file that a manifest names is not overwritten.
        file = f"state-{round:08d}-{checksum[:8]}.safetensors"
    files.write_bytes(folder / file, content)
    before = None
    with suppress(*DAMAGED):  # a damaged one must not replace an intact one
        _content(folder, _manifest(folder / CURRENT))
        before = files.read_bytes(folder / CURRENT)
    if before is not None:
        files.write_bytes(folder / PREVIOUS, before)
    manifest = {"schema": CHECKPOINT_SCHEMA, "round": round, "file": file, "sha256": checksum}
    # Every digit of a setting: rounded, it would be another one.
    files.write_sealed(folder / CURRENT, manifest | about, SEAL)
    wanted = _named_files(folder)
    for stale in (*folder.glob("state-*.safetensors"), *folder.glob(".*.part")):
        if stale.name not in wanted:
            stale.unlink()


def load_checkpoint(
    folder: Path,
    like: State,
    *,
    at_most: int | None = None,
    check: Callable[[Manifest], None] = lambda manifest: None,
) -> Checkpoint | None:
    """Return the newest intact state, or None if none was saved.

    Args:
        folder: of checkpoints.
        like: a tree of the same structure.
        at_most: ignore states of later rounds.
        check: called with the manifest; what it raises is passed on.

    Raises:
        RunError: all are damaged.
    """

    def make(manifest: Manifest, arrays: Arrays) -> Checkpoint:
        check(manifest)
        return Checkpoint(manifest["round"], structured(arrays, like), manifest)

    return newest(folder, make, at_most=at_most)


def newest(
    folder: Path, make: Callable[[Manifest, Arrays], Made], *, at_most: int | None = None
) -> Made | None:
    """Return `make(manifest, arrays)` of the newest intact checkpoint, or None if there is none."""
    problems = []
    files.refuse_link(folder)
    for path in (folder / CURRENT, folder / PREVIOUS):
        if not path.exists():
            continue
        try:
            manifest, arrays = _read(folder, path)
            if at_most is None or manifest["round"] <= at_most:
                return make(manifest, arrays)
        except (*DAMAGED, SafetensorError) as problem:
            problems.append(f"{path.name}: {problem}")
            warn(f"the checkpoint of {path.name} is damaged ({problem}); trying the previous one")
    if problems:
        raise RunError(f"no intact checkpoint in {folder}: {'; '.join(problems)}; use --force")
    return None


def sealed(manifest: Manifest) -> Manifest:
    """Return a manifest with the checksum of all the rest of it.

    >>> sealed({"round": 8, "schema": 2})["manifest_sha256"][:8]
    'e117576e'
    """
    rest = {key: value for key, value in manifest.items() if key != SEAL}
    return {**rest, SEAL: files.seal_of(rest)}


def structured(arrays: Arrays, like: State) -> State:
    """Return named arrays in the structure of `like`."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise RunError(
            f"expected {missing[0]!r} in what was learned, found none: another learner, or another "
            "version of it, has learned it; continue with that version, or start anew with --force"
        )
    return jax.tree.unflatten(structure, [arrays[name] for name in names])


def _read(folder: Path, path: Path) -> tuple[Manifest, Arrays]:
    """A manifest of the current schema and its arrays, checked."""
    manifest = _manifest(path)
    schema = manifest["schema"]
    if schema > CHECKPOINT_SCHEMA:
        raise RunError(
            f"expected a checkpoint of schema {CHECKPOINT_SCHEMA} or older, got {schema}; "
            "it was written by a newer fairsaoml: upgrade to continue"
        )
    arrays: Arrays = load_arrays(_content(folder, manifest))
    for older in range(schema, CHECKPOINT_SCHEMA):
        if older not in MIGRATIONS:
            raise RunError(
                f"expected a checkpoint of schema {min(MIGRATIONS)} to {CHECKPOINT_SCHEMA}, got "
                f"{schema}; continue with the version of fairsaoml that wrote it"
            )
        manifest, arrays = MIGRATIONS[older](manifest, arrays)
    return {**manifest, "schema": CHECKPOINT_SCHEMA}, arrays


def _manifest(path: Path) -> Manifest:
    """A manifest as it was written; ValueError if it is damaged."""
    manifest = files.read_json(path)
    # The first schema had no seal; whatever has one must fit it, the schema's digit included.
    if (SEAL in manifest or manifest["schema"] > 1) and manifest != sealed(manifest):
        raise ValueError("the manifest is not what was written")
    return manifest


def _content(folder: Path, manifest: Manifest) -> bytes:
    """The bytes of a manifest's state; ValueError if they are damaged."""
    file = manifest["file"]
    if not re.fullmatch(r"state-[\w-]+\.safetensors", file):
        raise ValueError(f"it names {file!r}, which is no state of this folder")
    content = files.read_bytes(folder / file)
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise ValueError(f"{file} is not what was written")
    return content


def _named_files(folder: Path) -> set[str]:
    """The state files that the manifests name, as far as these can be read."""
    names = set()
    for manifest in (CURRENT, PREVIOUS):
        with suppress(*DAMAGED):
            names.add(files.read_json(folder / manifest)["file"])
    return names
