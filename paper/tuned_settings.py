"""Settings that tuning chose, one TOML file a learner: `tuned/LEARNER.toml`.

What stands at the top goes for every stream; a table named as a stream overrides it there. The
comment at the head of each file is the command that made it. No file: the learner's defaults.
"""

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fairsaoml.core.errors import ConfigError

__all__ = ["is_tuned", "settings_for"]


def settings_for(learner: str, stream: str, folder: Traversable | None = None) -> dict[str, Any]:
    """What a learner is set to on a stream; nothing where nobody tuned it.

    >>> settings_for("no-such-learner", "synthetic")
    {}
    """
    file = _file(learner, folder)
    if not file.is_file():
        return {}
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}; write it anew by tuning") from None
    common = {key: value for key, value in content.items() if not isinstance(value, dict)}
    own = content.get(stream, {})
    return common | own


def is_tuned(learner: str, folder: Traversable | None = None) -> bool:
    """Whether a learner's settings were chosen by tuning."""
    return _file(learner, folder).is_file()


def _file(learner: str, folder: Traversable | None) -> Traversable:
    # Not a package: only data lies there.
    return (folder or files("paper") / "tuned") / f"{learner}.toml"
