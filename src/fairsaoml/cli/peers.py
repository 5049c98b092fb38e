"""`fairsaoml peers`: models of other libraries on the same stream."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.compare import print_comparison
from fairsaoml.cli.options import (
    TABLE,
    AsJson,
    Force,
    Quiet,
    StreamName,
    StreamSettings,
    table_settings,
    takes,
)
from fairsaoml.cli.output import chosen, print_json, stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings

__all__ = ["peers"]


@takes(TABLE, into="table")
def peers(
    stream: StreamName,
    alternatives: Annotated[
        str, typer.Option("--alternatives", "--peers", help="Which: all, or A,B.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many, where anything is random.")] = 1,
    refit_every: Annotated[
        int, typer.Option(min=1, help="Refit only every so many rounds; the row's name says so.")
    ] = 1,
    set_: StreamSettings = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for all of them. \\[runs/paper/peers/STREAM]")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json_: AsJson = False,
    *,
    table: dict[str, Any],
) -> None:
    """Run scikit-learn, Fairlearn and River models on the same stream.

    Finished runs are kept: the same command finishes one that was stopped.
    """
    from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan

    specs = plan(
        stream,
        chosen(alternatives, CATALOG),
        stream_settings=parse_settings(set_ or []) | table_settings(stream, table),
        seeds=range(seeds),
        every=refit_every,
    )
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)
    with progress([spec.label for spec in specs], seeds, quiet=quiet) as on_event:
        comparison = compare_alternatives(specs, folder, force=force, on_event=on_event)
    if json_:
        print_json(comparison | {"folder": str(folder)})
        return
    print_comparison(comparison)
    for entry in comparison["learners"]:
        typer.echo(f"{entry['learner']}: {entry['what']}.")
    typer.echo(f"runs: {folder}")
