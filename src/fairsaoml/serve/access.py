"""Who may do what: a token for deciding, one for labels, one for reading.

Without tokens only this machine is served, and only under its own names: a page from elsewhere that
has its name point here is not.
"""

import hmac
import ipaddress
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from fairsaoml.core.errors import ConfigError

__all__ = ["SCOPES", "Access", "Refused", "is_loopback", "read_tokens"]

SCOPES = ("decide", "label", "read")
VARIABLE = "FAIRSAOML_TOKEN_{}"
SHORTEST = 16  # letters; shorter ones can be guessed


class Refused(Exception):
    """A request that is not answered: its status and what to say."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Access:
    """Compares tokens, in constant time."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = {scope: token.encode() for scope, token in tokens.items()}

    def require(self, scope: str, headers: Mapping[str, str]) -> None:
        """Raise Refused for a request that may not do this."""
        if not self._tokens:
            if is_loopback(headers.get("host", "").rsplit(":", 1)[0].strip("[]")):
                return
            words = "expected a request to this machine by its own name; set tokens to serve it"
            raise Refused(403, words)
        kind, _, given = headers.get("authorization", "").partition(" ")
        token = self._tokens[scope]
        if kind.lower() != "bearer" or not hmac.compare_digest(given.encode(), token):
            raise Refused(401, f"expected the token for `{scope}` as `Authorization: Bearer TOKEN`")


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_tokens(file: Path | None, host: str) -> dict[str, str]:
    """Return the tokens in a file (lines `decide=...`) or the environment.

    Raises:
        ConfigError: an address that others reach and no tokens; some but not all; short ones.
    """
    tokens = {scope: os.environ.get(VARIABLE.format(scope.upper()), "") for scope in SCOPES}
    if file is not None:
        for line in file.read_text().splitlines():
            scope, _, token = line.partition("=")
            if scope.strip() in tokens:
                tokens[scope.strip()] = token.strip()
    if not any(tokens.values()):
        if is_loopback(host):
            return {}
        raise ConfigError(
            f"expected tokens to listen on {host}, got none; give --tokens FILE with lines "
            "decide=..., label=..., read=..., or listen on 127.0.0.1"
        )
    for scope, token in tokens.items():
        if len(token) < SHORTEST or not token.isascii():
            raise ConfigError(
                f"expected a token of at least {SHORTEST} letters for `{scope}`, got "
                f"{len(token)}; make one with `python -c 'import secrets; "
                "print(secrets.token_urlsafe())'`"
            )
    return tokens
