"""Who may do what, and how much: tokens; bytes, rows, seconds, connections.

There is a token for deciding, one for labels, one for reading. Without tokens only this machine is
served, and only under its own names: a page from elsewhere that has its name point here is not.
"""

import hmac
import ipaddress
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import h11
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairsaoml.core.errors import ConfigError

SCOPES = ("decide", "label", "read")
VARIABLE = "FAIRSAOML_TOKEN_{}"
SHORTEST = 16  # letters; shorter ones can be guessed
HEADER_BYTES = 16 * 1024
BODY_BYTES = 32 * 1024 * 1024
MOST_ROWS = 10_000  # in one request
MOST_LABELS = 100_000
MOST_CONNECTIONS = 512
MOST_WATCHERS = 64  # connections that listen to events
SECONDS = {h11.IDLE: 10.0, h11.SEND_BODY: 30.0}  # for the head of a request, and for its body
IDLE_SECONDS = 30  # of a connection between requests


class Refused(Exception):
    """A request that is not answered: its status and what to say."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def require(tokens: Mapping[str, str], scope: str, headers: Mapping[str, str]) -> None:
    """Raise Refused for a request that may not do this; tokens are compared in constant time."""
    if not tokens:
        if is_loopback(headers.get("host", "").rsplit(":", 1)[0].strip("[]")):
            return
        words = "expected a request to this machine by its own name; set tokens to serve it"
        raise Refused(403, words)
    kind, _, given = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.encode(), tokens[scope].encode())
    if kind.lower() != "bearer" or not same:
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


async def read_body(request: Request) -> bytes:
    """Return a request's body.

    Raises:
        Refused: it is too long.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES:
            raise Refused(413, f"expected at most {BODY_BYTES} bytes; send fewer rows")
        parts.append(part)
    return b"".join(parts)


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection too many, or one whose request does not come."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._awaited: Any = h11.IDLE
        self._since = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
            transport.close()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Note which part of a request is awaited."""
        super().data_received(data)
        if self._awaited is not self.conn.their_state:
            self._awaited, self._since = self.conn.their_state, self.loop.time()

    def _watch(self) -> None:
        if self.transport.is_closing():
            return
        seconds = SECONDS.get(self._awaited)
        if seconds is not None and self.loop.time() - self._since >= seconds:
            self.transport.close()
        else:
            self.loop.call_later(min(SECONDS.values()) / 2, self._watch)
