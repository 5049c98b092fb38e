"""`fairsaoml peers`: what a user would pick instead, on the same stream."""

from pathlib import Path
from typing import Annotated

import typer

from fairsaoml.cli.compare import comparison_progress, print_comparison
from fairsaoml.cli.output import print_json, stem
from fairsaoml.cli.settings import parse_settings
from fairsaoml.core.errors import ConfigError

__all__ = ["peers"]


def peers(
    stream: Annotated[
        str, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
    ],
    peers: Annotated[str, typer.Option(help="Which: all, or A,B.")] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many, where anything is random.")] = 1,
    every: Annotated[
        int, typer.Option(min=1, help="Refit only every so many rounds; the row's name says so.")
    ] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a setting of the stream.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for all of them. [runs/paper/peers/STREAM]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace runs in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
) -> None:
    """Play a stream with learners of scikit-learn, Fairlearn and River.

    What is finished is kept: a command that was stopped is finished by the same command.
    """
    from fairsaoml.compare.alternatives import CATALOG, beside, plan, play

    names = list(CATALOG) if peers == "all" else peers.split(",")
    if len(set(names)) < len(names):
        raise ConfigError(f"expected each peer once, got {peers}")
    specs = plan(
        stream,
        names,
        stream_settings=parse_settings(set_ or []),
        seeds=range(seeds),
        every=every,
    )
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)

    with comparison_progress([spec.label for spec in specs], seeds, quiet=quiet) as watch:
        for spec in specs:
            play(spec, folder / spec.label, force=force, on_round=watch(spec.row))
    comparison = beside(specs, folder)
    if json_:
        print_json(comparison | {"folder": str(folder)})
        return
    print_comparison(comparison)
    for entry in comparison["learners"]:
        typer.echo(f"{entry['learner']}: {entry['what']}.")
    typer.echo(f"runs: {folder}")
