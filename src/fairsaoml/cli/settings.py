"""Settings as people type them: `--set key=value` and TOML files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import ConfigError

WORDS = {"none": None, "null": None, "true": True, "false": False}


def parse_value(text: str) -> Any:
    """Return a number, a list, true, false or none if the text reads as one; else the text.

    >>> [parse_value(text) for text in ("0.1", "20", "none", "[40, 40]", "dp+eo", "2014-2016")]
    [0.1, 20, None, [40, 40], 'dp+eo', '2014-2016']
    """
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float | list) else text


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings of `--set` options; the last value of a key counts.

    Raises:
        ConfigError: a pair without a key or an equals sign.
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"expected --set key=value, got {pair!r}; such as tolerance=0.05")
        settings[key.strip()] = parse_value(value.strip())
    return settings


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file: `learner`, `seeds`, `seed` and settings, all top level.

    Raises:
        ConfigError: no such file, not TOML, or a file with sections.
    """
    import tomllib

    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"expected a TOML file at {path}, got {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}; write lines such as seeds = 5") from None
    for key, value in content.items():
        if isinstance(value, dict):
            raise ConfigError(
                f"{path}: expected all settings at the top level, got a section [{key}]; "
                "write its lines without the heading"
            )
    return content
