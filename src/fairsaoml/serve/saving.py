"""Models in folders: `model.save(path)` and `load(path)`; a loaded model continues exactly.

A saved model is a checkpoint (`runs.checkpoint`): safetensors for the arrays and a JSON manifest
with the schema's version, the settings, the coding of labels, groups and features, the round, the
seed and the package versions. Never pickle: loading runs no code from the folder. Saving again
keeps the previous model until the new one is complete.
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
# A saved model names a class of one of these modules, and no other.
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
        """Write the model into a folder; one saved there before is replaced.

        Raises:
            RunError: the folder holds something else.
        """
        folder = Path(path)
        _require_ours(folder)
        round, arrays, about = self._saved()
        versions = {name: version(name) for name in PACKAGES} | {"python": python_version()}
        about = {"kind": self._kind(), **about, "versions": versions}
        save_checkpoint(folder, round, arrays, about)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """Return the model of this class that was saved in a folder.

        Raises:
            RunError: no such model there, or a damaged one.
        """

        def make(manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
            if manifest["kind"] != cls._kind():
                raise RunError(
                    f"expected a {cls._kind()} in {path}, got a {manifest['kind']}; "
                    "load it with its own class, or with `fairsaoml.load`"
                )
            return cls._restored(Saved(manifest["round"], arrays, manifest))

        return _newest(Path(path), make)

    @classmethod
    def _kind(cls) -> str:
        return f"{cls._home}.{cls.__name__}"

    @abstractmethod
    def _saved(self) -> Saved:
        """Return all that is needed to continue."""

    @classmethod
    @abstractmethod
    def _restored(cls, saved: Saved) -> Self:
        """Return the model that `_saved` described."""


def load(path: str | PathLike) -> Any:
    """Return the model that was saved in a folder, of whichever class of this package.

    Raises:
        RunError: no such model there, or one of another package's class.
    """
    kind = _newest(Path(path), lambda manifest, _: manifest["kind"])
    home, _, name = kind.partition(".")
    module = import_module(f"fairsaoml.estimators.{home}") if home in HOMES else None
    if name not in getattr(module, "__all__", ()):
        raise RunError(
            f"expected a model of this package in {path}, got a {kind!r}; "
            "load it with its own class: YourClass.load(path)"
        )
    return getattr(module, name).load(path)


def part(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays that were saved under a name of a dictionary.

    >>> part({"['a'].x": np.ones(1), "['b']": np.zeros(1)}, "a")
    {'.x': array([1.])}
    """
    under = f"[{name!r}]"
    return {key.removeprefix(under): one for key, one in arrays.items() if key.startswith(under)}


def _newest(folder: Path, make: Any) -> Any:
    model = newest(folder, make)
    if model is None:
        raise RunError(
            f"expected a saved model in {folder}, found none; write one with `model.save(path)`"
        )
    return model


def _require_ours(folder: Path) -> None:
    """Refuse to write where something else is."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another path")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    strange = [name for name in names if not any(fnmatch(name, pattern) for pattern in OURS)]
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
