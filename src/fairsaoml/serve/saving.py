"""What was learned, in a folder: `model.save(path)`, `load(path)`; it goes on as if never away.

A saved model is a checkpoint (`runs.checkpoint`): safetensors for the arrays and a JSON manifest
with the schema's version, the settings, the coding of labels, groups and features, the round, the
seed and the package versions. Never pickle: nothing in the folder is run. Saving again keeps the
model before until the new one is whole.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fnmatch import fnmatch
from importlib import import_module
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.files import read_json
from fairsaoml.runs.checkpoint import newest, save_checkpoint

__all__ = ["Saveable", "Saved", "load", "part"]

MANIFEST = "manifest.json"
OURS = (MANIFEST, "previous.json", "state-*.safetensors", ".*.part")
# Where a kind may come from: a file names a class of these modules, and no other.
HOMES = ("online", "sklearn", "river")
PACKAGES = ("fairsaoml", "jax", "numpy", "scikit-learn")


class Saved(NamedTuple):
    """A model as data."""

    round: int
    arrays: Any  # any tree of arrays when it is written; by name when it is read
    about: dict[str, Any]  # plain JSON


class Saveable(ABC):
    """A model that can be written to a folder and read again."""

    _home: ClassVar[str]  # one of HOMES

    def save(self, path: str | PathLike) -> None:
        """Write the model into a folder of its own; one saved there before is replaced."""
        folder = Path(path)
        _require_ours(folder)
        round, arrays, about = self._saved()
        versions = {name: version(name) for name in PACKAGES} | {"python": python_version()}
        about = {"kind": self._kind(), **about, "versions": versions}
        save_checkpoint(folder, round, arrays, about)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """The model of this class in a folder."""

        def make(manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
            if manifest["kind"] != cls._kind():
                raise RunError(
                    f"expected a {cls._kind()} in {path}, got a {manifest['kind']}; "
                    "load it with its own class, or with `fairsaoml.load`"
                )
            return cls._restored(Saved(manifest["round"], arrays, manifest))

        return _found(Path(path), make)

    @classmethod
    def _kind(cls) -> str:
        return f"{cls._home}.{cls.__name__}"

    @abstractmethod
    def _saved(self) -> Saved:
        """All that is needed to go on."""

    @classmethod
    @abstractmethod
    def _restored(cls, saved: Saved) -> Self:
        """The model that `_saved` gave."""


def load(path: str | PathLike) -> Any:
    """What was saved in a folder, of whichever class of this package."""
    kind = _found(Path(path), lambda manifest, _: manifest["kind"])
    home, _, name = kind.partition(".")
    module = import_module(f"fairsaoml.estimators.{home}") if home in HOMES else None
    if name not in getattr(module, "__all__", ()):
        raise RunError(
            f"expected a model of this package in {path}, got a {kind!r}; "
            "load it with its own class: YourClass.load(path)"
        )
    return getattr(module, name).load(path)


def part(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays that were saved under a name of a dictionary.

    >>> part({"['a'].x": np.ones(1), "['b']": np.zeros(1)}, "a")
    {'.x': array([1.])}
    """
    under = f"[{name!r}]"
    return {key.removeprefix(under): one for key, one in arrays.items() if key.startswith(under)}


def _found(folder: Path, make: Any) -> Any:
    found = newest(folder, make)
    if found is None:
        raise RunError(
            f"expected a saved model in {folder}, found none; write one with `model.save(path)`"
        )
    return found


def _require_ours(folder: Path) -> None:
    """Refuse to write where something else is."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another path")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    strange = [name for name in names if not any(fnmatch(name, own) for own in OURS)]
    if not strange and MANIFEST in names:
        try:
            strange = [] if "kind" in read_json(folder / MANIFEST) else [MANIFEST]
        except (OSError, ValueError, TypeError):
            strange = []  # a damaged one of ours
    if strange:
        raise RunError(
            f"expected an empty folder or a saved model at {folder}, found {strange[0]!r}; "
            "give a path of its own"
        )
