"""The commands on folders of runs: `fairsaoml predict`, `regret`, `report`, `runs`, `serve`."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import typer
from typer import Argument, Option

from fairsaoml.cli.options import AsJson, Quiet, RunFolder, flag, piped, print_json
from fairsaoml.cli.progress import bar
from fairsaoml.core.errors import ConfigError

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
MOST_HELD = 1_000_000  # rows that wait for their label


def predict(
    folder: RunFolder,
    file: str = Argument(help="New rows: CSV or Parquet, columns as learned; - reads stdin."),
    seed: int | None = Option(None, help="Which seed's model. \\[the first]"),
    keep: str | None = Option(None, help="Columns of the new rows to keep: id,name."),
    explain: bool = flag("--explain", help="Say why: threshold, fairness, columns that counted."),
    out: Path | None = Option(
        None, help="A file ending in .csv, .jsonl or .parquet. \\[CSV on standard output]"
    ),
) -> None:
    """Score new rows: a calibrated probability and the decision for each, in the label's words."""
    from fairsaoml.serve import predict as decisions

    if out is not None:
        decisions.check_ending(out)
    with piped(file) as path:
        predicted = decisions.predict_rows(folder, path, seed=seed, explain=explain)
    for note in predicted.notes:
        typer.echo(note, err=True)
    table = decisions.decision_table(predicted, keep.split(",") if keep else ())
    if out is None:
        sys.stdout.write(decisions.to_bytes(table).decode())
    else:
        decisions.write_decisions(table, out)
        typer.echo(f"{table.num_rows} rows: {out}", err=True)


def report(
    folders: list[Path] = Argument(metavar="DIR...", help="Folders of runs."),
    out: Path | None = Option(None, help="The HTML file. [DIR/report.html]"),
    picture: Path | None = Option(None, help="Also write a small SVG picture."),
) -> None:
    """Write the report of one run, or of several overlaid, as one HTML file."""
    from fairsaoml.report import write_picture, write_report

    shared = folders[0] if len(folders) == 1 else Path(folders[0]).parent
    typer.echo(f"report: {write_report(folders, out or shared / 'report.html')}")
    if picture is not None:
        write_picture(folders, picture)
        typer.echo(f"picture: {picture}")


def runs(
    folder: Path = Argument(Path("runs"), help="Where to look."),
    json_: AsJson = False,
) -> None:
    """List the runs in a folder: stream, learner, rounds, verdict, when."""
    from fairsaoml.cli.tables import print_runs
    from fairsaoml.runs.listing import list_runs

    listed = list_runs(folder)
    if json_:
        print_json(listed)
    elif listed:
        print_runs(listed)
    else:
        typer.echo(f"no runs in {folder}; `fairsaoml run` makes one", err=True)


def regret(
    folder: RunFolder,
    windows: str | None = Option(
        None, help="Window lengths: 1,4,16, or all. \\[powers of two, and all rounds]"
    ),
    adapted: bool = flag("--adapted", help="Of the scores after a few labels of each round."),
    every_round: bool = flag("--every-round", help="Best models that are fair in every round."),
    adapting: bool = flag("--adapting", help="As --adapted, and the best models adapt as well."),
    comparator: bool = Option(
        True, help="Solve for the best models; without, measure violations only."
    ),
    picture: Path | None = Option(None, help="Also write an SVG picture."),
    quiet: Quiet = False,
    json_: AsJson = False,
) -> None:
    """Measure regret against the best fixed model of every window, and the sums of violations."""
    from fairsaoml.cli.tables import print_regret
    from fairsaoml.files import tidy
    from fairsaoml.report.markup import check_picture
    from fairsaoml.report.regret import write_regret_picture
    from fairsaoml.runs.regret import regret as regret_of

    if picture is not None:
        check_picture(picture)
    with bar("windows solved", quiet=quiet or json_) as on_progress:
        measured = regret_of(
            folder,
            windows=windows,
            adapted=adapted,
            every_round=every_round,
            adapting=adapting,
            comparator=comparator,
            on_progress=on_progress,
        )
    if picture is not None:
        write_regret_picture(measured, picture)
    if json_:
        return print_json(tidy(measured))
    print_regret(measured)
    if picture is not None:
        typer.echo(f"picture: {picture}")


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
        wait_seconds=seconds_of(wait),
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
        raise ConfigError(f"expected a duration in {', '.join(UNITS)}, such as 7d; got {text!r}")
    return float(match[1]) * UNITS[match[2]]
