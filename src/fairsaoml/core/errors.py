"""Errors a person can act on: what was expected, what came, what to do; and warnings.

A warning is shown with the line outside of this package that called it.
"""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES, LONGEST_NAME = 20, 60  # that an error lists, and letters of one


class FairSAOMLError(Exception):
    """Anything this package refuses to do; the command prints it in one line and exits 1."""


class ConfigError(FairSAOMLError, ValueError):
    """A setting, a name or an option that cannot be used."""


class DataError(FairSAOMLError, ValueError):
    """Rows, columns or files that cannot be learned from."""


class RunError(FairSAOMLError):
    """A run's folder that cannot be written, read or continued."""


def closest(word: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown word.

    >>> closest("tolerence", ["tolerance", "base"])
    "did you mean 'tolerance'?"
    >>> closest("x", ["tolerance", "base"])
    'known: base, tolerance'
    """
    known = sorted(known)
    match = get_close_matches(word, known, n=1)
    if match:
        return f"did you mean {match[0]!r}?"
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"known: {', '.join(name[:LONGEST_NAME] for name in known[:MOST_NAMES])}{more}"


def warn(words: str) -> None:
    """Warn the caller of this package, however many of its functions lie between.

    Python 3.12 has `skip_file_prefixes` for this.
    """
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2  # 1 would be this function's own line
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(words, stacklevel=level)
