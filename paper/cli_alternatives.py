"""`python -m paper alternatives`: other libraries' learners with tuned settings, on a stream."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.compare import print_comparison
from fairsaoml.cli.output import stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings

__all__ = ["alternatives"]


def alternatives(
    stream: Annotated[
        str, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
    ],
    names: Annotated[str, typer.Option("--alternatives", help="Which: all, or A,B.")] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many, where anything is random.")] = 1,
    every: Annotated[int, typer.Option(min=1, help="Refit only every so many rounds.")] = 1,
    trials: Annotated[int, typer.Option(min=1, help="How many settings are tried for each.")] = 60,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a setting of the stream.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for all of them. [runs/paper/peers/STREAM]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Run them with their own defaults, then with settings searched for by our learners' budget."""
    from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan
    from paper.tuning_alternatives import tuned

    specs = plan(
        stream,
        list(CATALOG) if names == "all" else names.split(","),
        stream_settings=parse_settings(set_ or []),
        seeds=range(seeds),
        every=every,
    )
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)

    def say(label: str, trial: Any) -> None:
        if not quiet:
            scores = f"accuracy {trial.scores.accuracy:.3f}, ratio {trial.scores.ratio:.3f}"
            print(f"{label}: trial {trial.number + 1} of {trials}: {scores}", file=sys.stderr)

    specs += [
        tuned(spec, folder, trials=trials, on_trial=partial(say, spec.label)) for spec in specs
    ]
    with progress([spec.label for spec in specs], seeds, quiet=quiet) as on_event:
        comparison = compare_alternatives(specs, folder, on_event=on_event)
    print_comparison(comparison)
    typer.echo(f"runs: {folder}")
