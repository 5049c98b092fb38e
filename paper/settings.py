"""Tuned settings, one TOML file for each learner: `tuned/LEARNER.toml`.

The keys at the top hold for every stream; a table named after a stream overrides them there. The
comment at the head of each file is the command that made it. A learner without a file runs with its
defaults.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import ConfigError
from fairsaoml.files import write_text

__all__ = ["TUNED", "is_tuned", "save_settings", "settings_for", "to_toml"]

TUNED = Path(__file__).parent / "tuned"
HEAD = "# Settings chosen by tuning; `python -m paper reproduce` reads them.\n"


def settings_for(learner: str, stream: str, folder: Path = TUNED) -> dict[str, Any]:
    """Return the tuned settings of a learner on a stream; empty if it was not tuned.

    Raises:
        ConfigError: the file is not TOML.

    >>> settings_for("no-such-learner", "synthetic")
    {}
    """
    if not is_tuned(learner, folder):
        return {}
    file = folder / f"{learner}.toml"
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}; tune again to replace it") from None
    common = {key: value for key, value in content.items() if not isinstance(value, dict)}
    return common | content.get(stream, {})


def is_tuned(learner: str, folder: Path = TUNED) -> bool:
    """Whether there are tuned settings of a learner."""
    return (folder / f"{learner}.toml").is_file()


def save_settings(
    path: Path, stream: str | None, settings: Mapping[str, Any], comments: Sequence[str]
) -> None:
    """Replace a stream's table in a TOML file, keeping the others.

    Args:
        path: the file; it is created if need be.
        stream: the table's name. None: the settings go to the top, for every stream.
        settings: what to write.
        comments: lines to put above the settings.

    Raises:
        ConfigError: the file is there and is not TOML.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else HEAD
    # A table reaches from its heading to the next one, or to the end.
    top, *tables = re.split(r"(?m)^(?=\[)", old)
    try:
        others = [table for table in tables if stream not in tomllib.loads(table)]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}; give another --save") from None
    new = to_toml(stream, settings, comments)
    parts = [HEAD, new, *others] if stream is None else [top, *others, new]
    parts = [part.strip("\n") + "\n" for part in parts]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(part for part in parts if part.strip()))


def to_toml(table: str | None, settings: Mapping[str, Any], comments: Sequence[str]) -> str:
    """Return settings as a TOML table, with comments under its heading.

    Strings, lists and numbers are written in TOML as in JSON. A setting that is None is left out:
    TOML has no null.

    >>> print(to_toml("a:b", {"scale": 0.5, "base": 2, "score": "logit"}, ["made by hand"]), end="")
    ["a:b"]
    # made by hand
    scale = 0.5
    base = 2
    score = "logit"
    """
    lines = [] if table is None else [f"[{json.dumps(table)}]"]
    lines += [f"# {line}" for line in comments]
    lines += [
        f"{key} = {json.dumps(value)}" for key, value in settings.items() if value is not None
    ]
    return "\n".join(lines) + "\n"
