"""`fairsaoml reproduce`: the paper's figures and tables, from its runs to one page."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fairsaoml.cli.options import Address, Engine, Jobs
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings

__all__ = ["reproduce"]

NAME = 60  # letters of a run's name in the progress display


def reproduce(
    what: Annotated[
        str,
        typer.Argument(help="all, figure-1, figure-3, runtime, ablation, base or bounds."),
    ] = "all",
    out: Annotated[Path, typer.Option(help="Where runs, figures and tables go.")] = Path(
        "runs/paper"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 10,
    streams: Annotated[
        str | None, typer.Option(help="Which streams: A,B. [the paper's three]")
    ] = None,
    learners: Annotated[
        str | None, typer.Option(help="Which learners: A,B. [the paper's seven and ours]")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: of the streams, or of every learner that takes it."),
    ] = None,
    jobs: Jobs = 2,
    engine: Engine = "local",
    address: Address = None,
    force: Annotated[bool, typer.Option("--force", help="Play and measure anew.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Repeat the paper's evaluation: figures, tables, and one page that shows all.

    What was played before is kept: a second call only draws, and one that was stopped is finished
    by the same command.
    """
    from paper import plan as paper
    from paper.reproduce import reproduce as play

    chosen = list(paper.EXHIBITS.values()) if what == "all" else [paper.exhibit(what)]
    choice = paper.Choice(
        streams=streams.split(",") if streams else paper.STREAMS,
        learners=learners.split(",") if learners else paper.LEARNERS,
        seeds=seeds,
        settings=parse_settings(set_ or []),
    )

    def say(words: str) -> None:
        if not quiet:
            print(words, file=sys.stderr, flush=True)

    specs = [job.spec for job in paper.jobs_of(chosen, choice, out)]
    names = [f"{spec.stream}: {spec.name}"[:NAME] for spec in specs]
    with progress(names, seeds, quiet=quiet) as on_event:
        page = play(
            chosen,
            choice,
            out,
            engine=engine,
            workers=jobs,
            address=address,
            force=force,
            on_event=on_event,
            say=say,
        )
    typer.echo(f"page: {page}")
