"""How much a client may ask for: bytes, rows, seconds, connections."""

from typing import Any

import h11
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairsaoml.serve.access import Refused

__all__ = [
    "HEADER_BYTES",
    "IDLE_SECONDS",
    "MOST_LABELS",
    "MOST_ROWS",
    "MOST_WATCHERS",
    "LimitedProtocol",
    "read_body",
]

HEADER_BYTES = 16 * 1024
BODY_BYTES = 32 * 1024 * 1024
MOST_ROWS = 10_000  # in one request
MOST_LABELS = 100_000
MOST_CONNECTIONS = 512
MOST_WATCHERS = 64  # connections that listen to events
SECONDS = {h11.IDLE: 10.0, h11.SEND_BODY: 30.0}  # for the head of a request, and for its body
IDLE_SECONDS = 30  # of a connection between requests


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
