"""`fairsaoml compare` and `fairsaoml peers`: learners, or other libraries, on one stream."""

from pathlib import Path
from typing import Any

import typer
from typer import Option

from fairsaoml.cli import options
from fairsaoml.cli.options import chosen, print_json, stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings


@options.takes("rule", "table")
def compare(
    stream: options.StreamName,
    learners: str = Option("all", help="Which learners: all, or A,B (`fairsaoml learners`)."),
    seeds: int = Option(10, min=1, help="How many seeds, run together."),
    seed: int = Option(0, min=0, help="The first of them."),
    set_: list[str] = Option(
        [], "--set", help="key=value: of the stream, or of every learner that takes it."
    ),
    out: Path | None = Option(None, help="A folder for all runs. \\[runs/STREAM-comparison]"),
    jobs: options.Jobs = 1,
    engine: options.Engine = "local",
    address: options.Address = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    *,
    table: dict[str, Any],
    rule: dict[str, Any],
) -> None:
    """Run several learners on one stream: one table and one report of all.

    The same command finishes a comparison that was stopped.
    """
    from fairsaoml.cli.tables import print_comparison
    from fairsaoml.compare import compare as comparing
    from fairsaoml.learners import registry

    names = chosen(learners, registry.registered())
    settings = parse_settings(set_) | options.decision_settings(rule)
    settings |= options.table_settings(stream, table)
    specs = comparing.plan(stream, names, settings, range(seed, seed + seeds))
    folder = out or Path("runs") / f"{stem(stream)}-comparison"
    with progress(names, seeds, quiet=quiet) as on_event:
        comparison = comparing.compare(
            specs,
            folder,
            force=force,
            engine=engine,
            workers=jobs,
            address=address,
            on_event=on_event,
        )
    if json_:
        return print_json(comparison | {"folder": str(folder)})
    print_comparison(comparison)
    typer.echo(f"report: {folder / 'report.html'}")


@options.takes("table")
def peers(
    stream: options.StreamName,
    alternatives: str = Option("all", "--alternatives", "--peers", help="Which: all, or A,B."),
    seeds: int = Option(1, min=1, help="How many, where anything is random."),
    refit_every: int = Option(
        1, min=1, help="Refit only every so many rounds; the row's name says so."
    ),
    set_: list[str] = Option([], "--set", help="key=value: a setting of the stream."),
    out: Path | None = Option(None, help="A folder for all of them. \\[runs/paper/peers/STREAM]"),
    force: options.Force = False,
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    *,
    table: dict[str, Any],
) -> None:
    """Run scikit-learn, Fairlearn and River models on the same stream.

    Finished runs are kept: the same command finishes one that was stopped.
    """
    from fairsaoml.cli.tables import print_comparison
    from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan
    from fairsaoml.learners import registry

    specs = plan(
        stream,
        chosen(alternatives, CATALOG),
        stream_settings=parse_settings(set_) | options.table_settings(stream, table),
        seeds=range(seeds),
        every=refit_every,
    )
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)
    with progress([spec.label for spec in specs], seeds, quiet=quiet) as on_event:
        comparison = compare_alternatives(specs, folder, force=force, on_event=on_event)
    if json_:
        return print_json(comparison | {"folder": str(folder)})
    print_comparison(
        comparison,
        f"The learners of fairsaoml are not among them: fairsaoml compare {stream} --learners "
        f"{registry.DEFAULT} with the same options of the stream shows the default one.",
    )
    for entry in comparison["learners"]:
        typer.echo(f"{entry['learner']}: {entry['what']}.")
    typer.echo(f"runs: {folder}")
