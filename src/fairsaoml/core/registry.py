"""Names that people type, ours and those of other packages: learners, constraints, models, streams.

Another package adds a name by an entry point in its pyproject.toml:

    [project.entry-points."fairsaoml.models"]
    forest = "their_package:forest"

Its code is imported when the name is asked for, not before: a package that cannot be imported is
no matter to those who do not use it.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from fairsaoml.core.errors import ConfigError, closest

__all__ = ["Registry"]

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """Items by name: `builtin`, then the entry points of `group`.

    `kind` is what an item is called in errors; `fits` whether an object is one, and `expected` what
    it is then. A name is one item's: an entry point named like a built-in item is refused.

    >>> colours = Registry("colour", "fairsaoml.colours", {"red": 1})
    >>> colours.names(), colours.get("red")
    (['red'], 1)
    >>> colours.get("rad")
    Traceback (most recent call last):
    fairsaoml.core.errors.ConfigError: unknown colour 'rad'; did you mean 'red'?
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, Item],
        fits: Callable[[Any], bool] = lambda item: True,
        expected: str = "an object",
    ) -> None:
        self.kind, self.group, self.builtin = kind, group, builtin
        self._fits, self._expected = fits, expected
        self._loaded: dict[str, Item] = {}

    def names(self) -> list[str]:
        """All names; no other package is imported."""
        return [*self.builtin, *(name for name in self._plugins if name not in self.builtin)]

    def get(self, name: str) -> Item:
        """The item of a name.

        Raises ConfigError if there is none, if there are two, or if the package that brings it
        cannot be imported or brings something else.
        """
        if name in self._plugins and name in self.builtin:
            raise ConfigError(
                f"{name!r} is a {self.kind} of fairsaoml, and of the package "
                f"{_package(self._plugins[name])!r} as well; uninstall that package, or give its "
                "entry point another name"
            )
        if name in self._plugins:
            if name not in self._loaded:
                self._loaded[name] = self._load(self._plugins[name])
            return self._loaded[name]
        if name not in self.builtin:
            raise ConfigError(f"unknown {self.kind} {name!r}; {closest(name, self.names())}")
        return self.builtin[name]

    def all(self) -> dict[str, Item]:
        """Every item by name."""
        return {name: self.get(name) for name in self.names()}

    def has_plugins(self) -> bool:
        """Whether other packages bring items."""
        return bool(self._plugins)

    @cached_property  # looking through all installed packages takes a while
    def _plugins(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group)}

    def _load(self, point: EntryPoint) -> Item:
        what = f"the {self.kind} {point.name!r} of the package {_package(point)!r}"
        try:
            item = point.load()
        except Exception as error:  # another package's code: anything can go wrong in it
            raise ConfigError(
                f"{what} cannot be loaded ({type(error).__name__}: {error}); repair that package "
                "or uninstall it"
            ) from error
        if not self._fits(item):
            raise ConfigError(
                f"{what} must be {self._expected}, got {type(item).__name__} at {point.value}; "
                "repair that package or uninstall it"
            )
        return item


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
