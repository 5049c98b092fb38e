"""Settings that tuning chose, written as TOML (`settings` reads them)."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import ConfigError
from fairsaoml.files import write_text

__all__ = ["save_settings", "to_toml"]

HEAD = "# Settings chosen by tuning; `fairsaoml reproduce` reads them.\n"


def save_settings(
    path: Path, stream: str | None, settings: Mapping[str, Any], words: Sequence[str]
) -> None:
    """Put a stream's table into a file, in the place of an older one; the rest stays as it is.

    Settings for every stream have no table: they stand at the top.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else HEAD
    # A table reaches from its heading to the next one, or to the end.
    first, *tables = re.split(r"(?m)^(?=\[)", old)
    try:
        others = [table for table in tables if stream not in tomllib.loads(table)]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}; give another --save") from None
    new = to_toml(stream, settings, words)
    parts = [HEAD, new, *others] if stream is None else [first, *others, new]
    parts = [part.strip("\n") + "\n" for part in parts]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(part for part in parts if part.strip()))


def to_toml(table: str | None, settings: Mapping[str, Any], words: Sequence[str]) -> str:
    """A table of plain settings, the words as comments under its heading, if it has one.

    A string, a list and a number are written in TOML as they are in JSON; what is None there is
    no line, TOML having no word for it.

    >>> print(to_toml("a:b", {"scale": 0.5, "base": 2, "score": "logit"}, ["made by hand"]), end="")
    ["a:b"]
    # made by hand
    scale = 0.5
    base = 2
    score = "logit"
    """
    lines = [] if table is None else [f"[{json.dumps(table)}]"]
    lines += [f"# {line}" for line in words]
    lines += [
        f"{key} = {json.dumps(value)}" for key, value in settings.items() if value is not None
    ]
    return "\n".join(lines) + "\n"
