"""One process that serves a run's folder until it is told to stop."""

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.serve.access import HEADER_BYTES, IDLE_SECONDS, LimitedProtocol, read_tokens
from fairsaoml.serve.app import App
from fairsaoml.serve.service import Service
from fairsaoml.serve.tasks import TaskRules

BACKLOG = 1024
COLLECTED = 50_000  # new objects, before garbage is looked for among them
SWITCH_SECONDS = 0.0005  # between threads: whoever waits for a commit goes on at once
ENDING_SECONDS = 10  # for requests that are under way when the service is told to stop


class Server(uvicorn.Server):
    """Stops on SIGTERM and Ctrl-C, and then returns."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Like uvicorn's, without raising the signal again: to stop when asked is no failure."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, then as uvicorn does."""
        self._app.end()
        await super().shutdown(sockets)


def serve(
    folder: Path,
    rules: TaskRules,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    webhook: str | None = None,
    origin: str | None = None,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve the model of a run's folder; returns when told to stop.

    Args:
        folder: the run's.
        rules: how tasks are cut, how long labels are waited for, how long rows are kept.
        host: an address of this machine; any but loopback needs tokens.
        port: 0 takes a free one.
        tokens: a file of tokens (`serve.access`).
        certificate: for TLS, with its `key`.
        key: the certificate's.
        webhook: alarms are posted there.
        origin: pages from there may call it.
        on_ready: called with the address, once requests are taken.

    Raises:
        ConfigError: an address without tokens, or a certificate without a key.
        RunError: no run, another process serves it, a port in use, a damaged store.
    """
    if (certificate is None) != (key is None):
        raise ConfigError("expected --certificate and --key together, got one of them")
    known = read_tokens(tokens, host)
    use_cache()
    one_thread()
    sys.setswitchinterval(SWITCH_SECONDS)
    with _listen(host, port) as listening:
        app = App(Service(folder, rules, webhook=webhook), known, origin)
        collect_seldom()
        config = uvicorn.Config(
            app.router,
            http=LimitedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=ENDING_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        scheme = "http" if certificate is None else "https"
        name = f"[{host}]" if ":" in host else host
        on_ready(f"{scheme}://{name}:{listening.getsockname()[1]}")
        Server(config, app).run(sockets=[listening])


def collect_seldom() -> None:
    """Spare requests the search for garbage: what is loaded stays, and rows leave no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why not."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Said to be TCP: else asyncio lets an answer's second part wait for the client to
        # acknowledge the first, 40 ms in every request.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)  # who comes before all is ready waits instead of being refused
    except OSError as problem:
        reason = problem.strerror or problem
        words = f"expected to listen on {host}:{port}, got: {reason}; give another --port"
        raise RunError(words) from None
    return listening
