"""Save a model to a folder and load it again: `model.save(path)`, `load(path)`.

A loaded model goes on exactly where the saved one stopped. The folder is a checkpoint
(`runs.checkpoint`): safetensors for the arrays and a JSON manifest with the schema's version, the
settings, the coding of labels, groups and features, the round, the seed and the package versions.
Never pickle: nothing in the folder is executed. Saving again keeps the model saved before until
the new one is complete.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatch
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.files import read_json
from fairsaoml.learners import registry
from fairsaoml.runs.checkpoint import CURRENT, newest, save_checkpoint
from fairsaoml.runs.folder import SAVED, SPEC
from fairsaoml.runs.saved import name_service
from fairsaoml.runs.spec import versions

if TYPE_CHECKING:
    from fairsaoml.serve.model import RunModel

# The modules whose classes a manifest may name in its `kind`, such as `sklearn.AODClassifier`.
HOMES = {
    "online": "fairsaoml.serve.online",
    "sklearn": "fairsaoml.estimators.sklearn",
    "river": "fairsaoml.estimators.river",
}
# Learners of classes that have been renamed since, for manifests that do not name the learner.
FORMER_CLASSES = {"FairSAOMLClassifier": "fairsaoml-live", "PaperFairSAOMLClassifier": "fairsaoml"}
PACKAGES = ("jax", "numpy", "scikit-learn")


class Saved(NamedTuple):
    """A model as data."""

    round: int
    arrays: Any  # any tree of arrays when it is written; by name when it is read
    manifest: dict[str, Any]  # plain JSON


class Saveable(ABC):
    """A model that can be written to a folder and read again."""

    _home: ClassVar[str]  # one of HOMES

    def save(self, path: str | PathLike) -> None:
        """Write the model into a folder of its own, replacing one saved there before.

        Raises RunError where the folder holds something else.
        """
        folder = Path(path)
        _require_ours(folder)
        round, arrays, manifest = self._saved()
        manifest = {"kind": self._kind(), **manifest, "versions": versions(*PACKAGES)}
        save_checkpoint(folder, round, arrays, manifest)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """Return the model of this class that was saved in a folder.

        Raises RunError where there is none, or one of another class.
        """

        def make(manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
            if not cls._reads(manifest):
                raise RunError(
                    f"expected a {cls._kind()} in {path}, got a {manifest['kind']} of the learner "
                    f"{saved_learner(manifest)}; load it with its own class or `fairsaoml.load`"
                )
            return cls._restored(Saved(manifest["round"], arrays, manifest))

        return _newest(Path(path), make)

    @classmethod
    def _kind(cls) -> str:
        return f"{cls._home}.{cls.__name__}"

    @classmethod
    def _reads(cls, manifest: Mapping[str, Any]) -> bool:
        """Whether a folder with this manifest holds a model of this class."""
        return manifest["kind"] == cls._kind()

    @abstractmethod
    def _saved(self) -> Saved:
        """Return all that is needed to go on."""

    @classmethod
    @abstractmethod
    def _restored(cls, saved: Saved) -> Self:
        """Return the model of which `_saved` returned this."""


def load(path: str | PathLike, *, seed: int | None = None) -> "RunModel | Saveable":
    """Return the model in a folder: of a run, or saved from Python by any class of this package.

    A model saved by a class that has another name now is loaded by the class of its learner. Where
    you know which it is, `RunModel(path)` and `AODClassifier.load(path)` say so to a type checker.

    Parameters
    ----------
    path
        A run's folder, which gives a `RunModel`, or the folder given to `model.save`.
    seed
        Which of a run's seeds, each of them a model of its own; by default the first.

    Raises
    ------
    ConfigError
        Where the run has no such seed.
    RunError
        Where the folder holds no model, or one of a class from elsewhere.
    """
    if (Path(path) / SPEC).exists():
        from fairsaoml.serve.model import RunModel  # which is itself made of what can be saved

        model = RunModel(path, seed=seed)
        name_service(Path(path), model.n_rounds_)
        return model
    manifest = _newest(Path(path), lambda manifest, _: manifest)
    home, _, name = manifest["kind"].partition(".")
    module = import_module(HOMES[home]) if home in HOMES else None
    names = [*getattr(module, "__all__", ()), name]  # the last may be another package's learner
    models = {one: getattr(module, one) for one in names if _is_model(getattr(module, one, None))}
    if (learner := saved_learner(manifest)) in registry.RETIRED:
        registry.entry(str(learner))  # says where it is to be had
    readers = {one: cls for one, cls in models.items() if cls._reads(manifest)}
    if not readers or name not in (*models, *FORMER_CLASSES):
        raise RunError(
            f"expected a model of this package in {path}, got a {manifest['kind']!r}; "
            "load it with its own class: YourClass.load(path)"
        )
    return readers.get(name, next(iter(readers.values()))).load(path)


def _is_model(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Saveable) and hasattr(thing, "_home")


def saved_learner(manifest: Mapping[str, Any]) -> str | None:
    """Return the learner's name, or None where only the class tells it."""
    online = manifest.get("online") or {}
    name = manifest["kind"].partition(".")[2]
    return manifest.get("learner") or online.get("learner") or FORMER_CLASSES.get(name)


def part(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the arrays that were saved under a name of a dictionary.

    >>> part({"['a'].x": np.ones(1), "['b']": np.zeros(1)}, "a")
    {'.x': array([1.])}
    """
    under = f"[{name!r}]"
    return {key.removeprefix(under): one for key, one in arrays.items() if key.startswith(under)}


def _newest(folder: Path, make: Any) -> Any:
    made = newest(folder, make)
    if made is None:
        raise RunError(
            f"expected a saved model in {folder}, found none; write one with `model.save(path)`"
        )
    return made


def _require_ours(folder: Path) -> None:
    """Raise RunError where the folder holds something else than a saved model."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"expected a folder at {folder}, found a file; give another path")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    foreign = [name for name in names if not any(fnmatch(name, pattern) for pattern in SAVED)]
    with suppress(OSError, ValueError, TypeError):  # none yet, or a damaged one of ours
        if not foreign and "kind" not in read_json(folder / CURRENT):
            foreign = [CURRENT]
    if foreign:
        raise RunError(
            f"expected an empty folder or a saved model at {folder}, found {foreign[0]!r}; "
            "give a path of its own"
        )
