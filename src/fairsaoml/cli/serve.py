"""`fairsaoml serve`: a run's model behind HTTP, with a page to watch."""

import re
from importlib.util import find_spec
from pathlib import Path

import typer
from typer import Argument, Option

from fairsaoml.cli.options import flag
from fairsaoml.core.errors import ConfigError

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
MOST_HELD = 1_000_000  # rows that wait for their label


def serve(
    folder: Path | None = Argument(None, metavar="[RUN]", help="The run's folder."),
    port: int = Option(8000, help="0 takes a free one."),
    host: str = Option("127.0.0.1", help="Any address but this machine's own needs tokens."),
    rows: int = Option(200, help="Decisions of one round of learning."),
    wait: str = Option("7d", help="How long a round waits for its labels."),
    retain: str = Option("30d", help="How long learned rows are kept."),
    tokens: Path | None = Option(None, help="A file with decide=..., label=..., read=..."),
    certificate: Path | None = Option(None, help="For TLS, with --key."),
    key: Path | None = Option(None, help="The certificate's key."),
    webhook: str | None = Option(None, help="Alarms are posted to this URL."),
    origin: str | None = Option(None, help="Let pages from this origin call it (CORS)."),
    schema: Path | None = Option(
        None, help="Begin a new model of rows as this JSON describes them."
    ),
    demo: bool = flag("--demo", help="A simulated world that changes twice."),
) -> None:
    """Decide now, learn when labels come, and watch how fair it is."""
    for needed in ("orjson", "prometheus_client", "starlette", "uvicorn"):
        if find_spec(needed) is None:
            raise ConfigError(
                f"expected {needed} to serve, found none; pip install 'fairsaoml[serve]'"
            )
    from fairsaoml.serve.server import serve as start
    from fairsaoml.serve.tasks import TaskRules

    if demo == (folder is not None):
        raise ConfigError("expected a run's folder or --demo, got both or neither")
    rules = TaskRules(
        task_rows=rows,
        task_seconds=None,
        wait_seconds=seconds_of(wait),
        late="next",
        unknown="count",
        max_rows=max(MOST_HELD, rows),
        retain_seconds=seconds_of(retain),
    )

    def ready(address: str) -> None:
        typer.echo(f"serving {folder or 'the demo'} at {address}")

    if demo:
        from fairsaoml.serve.demo import serve_demo

        serve_demo(rules, port=port, on_ready=ready)
        return
    assert folder is not None
    if schema is not None:
        from fairsaoml.serve.export import write_new

        if not (folder / "spec.json").exists():  # else it was begun before
            write_new(folder, schema, task_rows=rows)
    start(
        folder,
        rules,
        host=host,
        port=port,
        tokens=tokens,
        certificate=certificate,
        key=key,
        webhook=webhook,
        origin=origin,
        on_ready=ready,
    )


def seconds_of(text: str) -> float:
    """Return a duration in seconds.

    >>> seconds_of("7d"), seconds_of("90 min")
    (604800.0, 5400.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    if not match or match[2] not in UNITS:
        raise ConfigError(
            f"expected a duration in {', '.join(UNITS)}, got {text!r}; use for example 7d"
        )
    return float(match[1]) * UNITS[match[2]]
