"""`fairsaoml compare`: several learners on one stream, side by side."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.output import print_json, stem
from fairsaoml.cli.progress import OnRound, progress
from fairsaoml.cli.settings import parse_settings
from fairsaoml.cli.sweep import Address, Engine, Jobs, Shown, sweep, to_rounds
from fairsaoml.core.errors import ConfigError

__all__ = ["compare", "comparison_progress", "print_comparison"]

MARKS = {"met": "✓", "missed": "✗", "too few": "?", "undefined": "-"}
COLUMNS = {"accuracy": 14, "balanced": 14, "DP": 13, "EO": 13}  # all of it fits 80 columns
SECONDS, RECOVERS = "seconds", "back by"  # what the last column shows, where it shows anything
COLOURS = {"met": "green", "missed": "yellow"}


def compare(
    stream: Annotated[
        str, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
    ],
    learners: Annotated[
        str, typer.Option(help="Which learners: all, or A,B (`fairsaoml learners`).")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, played together.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: of the stream, or of every learner that takes it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for all runs. [runs/STREAM-comparison]")
    ] = None,
    jobs: Jobs = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Annotated[bool, typer.Option("--force", help="Replace runs in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
) -> None:
    """Play a stream with several learners: one table and one report of all.

    A comparison that was stopped is finished by the same command.
    """
    from fairsaoml.compare.compare import compare as play
    from fairsaoml.compare.compare import plan
    from fairsaoml.learners import registry

    names = list(registry.registered()) if learners == "all" else learners.split(",")
    if len(set(names)) < len(names):
        raise ConfigError(f"expected each learner once, got {learners}")
    specs = plan(stream, names, parse_settings(set_ or []), range(seed, seed + seeds))
    folder = out or Path("runs") / f"{stem(stream)}-comparison"
    with ExitStack() as stack:
        if engine == "local" and jobs == 1:
            watch = stack.enter_context(comparison_progress(names, seeds, quiet=quiet))
            on_event = to_rounds(specs, watch)
        else:  # several at a time: their rounds would come mixed
            shown = [Shown(name, seeds) for name in names]
            on_event = stack.enter_context(sweep(shown, quiet=quiet))
        comparison = play(
            specs,
            folder,
            force=force,
            engine=engine,
            workers=jobs,
            address=address,
            on_event=on_event,
        )
    if json_:
        print_json(comparison | {"folder": str(folder)})
        return
    print_comparison(comparison)
    typer.echo(f"report: {folder / 'report.html'}")


@contextmanager
def comparison_progress(
    names: Sequence[str], seeds: int, *, quiet: bool
) -> Iterator[Callable[[Any], OnRound | None]]:
    """For each spec in turn, a callback for its rounds; everything goes to stderr."""
    if quiet:
        yield lambda spec: None
    elif not sys.stderr.isatty():
        with progress(quiet=False) as on_round:

            def announce(spec: Any) -> OnRound | None:
                place = f"{names.index(spec.learner) + 1}/{len(names)}"
                print(f"{spec.learner} ({place}, {seeds} seeds)", file=sys.stderr, flush=True)
                return on_round

            yield announce
    else:
        with _bars(names, seeds) as watch:
            yield watch


@contextmanager
def _bars(names: Sequence[str], seeds: int) -> Iterator[Callable[[Any], OnRound]]:
    """A bar for each learner, in units of rounds x seeds."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} rounds x seeds"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        lines = {name: bars.add_task(name, total=1.0, start=False) for name in names}

        def watch(spec: Any) -> OnRound:
            line = lines[spec.learner]
            bars.start_task(line)

            def on_round(game: Any, played: Any) -> None:
                total = (game.stream.length or played.round) * seeds
                bars.update(line, total=total, completed=played.round * seeds)

            return on_round

        yield watch


def print_comparison(comparison: dict[str, Any]) -> None:
    """Blocks of rounds, learner by learner: pooled, then mean over rounds and spread over seeds."""
    from rich.console import Console
    from rich.table import Table

    console, learners = Console(), comparison["learners"]
    for title, found, last in _blocks(learners):
        console.print(f"[bold]{title}[/]", highlight=False)
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("", width=max(len(entry["learner"]) for entry in learners))
        for heading, width in {**COLUMNS, last: len(SECONDS)}.items():
            table.add_column(heading, justify="right", no_wrap=True, width=width)
        for entry, block in zip(learners, found, strict=True):
            cells = [_cell(block[name]) for name in ("accuracy", "balanced_accuracy")]
            cells += [_cell(block[name], digits=2) for name in ("dp_ratio", "eo_ratio")]
            table.add_row(entry["learner"], *cells, _extra(entry, last))
        console.print(table)
    rule, few = comparison["rule"], comparison["minimum_count"]
    notes = [
        f"First pooled over rounds and {len(comparison['seeds'])} seeds; then the mean over rounds "
        "± the standard deviation over seeds. Seconds: a round of one seed, compilation left out. "
        "Back by: the round of a new domain by which accuracy and DP are within .05 of its end, "
        "after the slowest change.",
        f"DP and EO: 1 is fair; {MARKS['met']} meets the 80 % rule ({rule}), {MARKS['missed']} "
        f"does not, {MARKS['too few']} has fewer than {few} positive decisions in some group. "
        "A pool over domains is not judged: opposite gaps cancel in it.",
        *_verdicts(learners),
    ]
    for note in notes:
        console.print(note, style="dim", highlight=False)


def _blocks(learners: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]], str]]:
    """Each block's title, its figures for every learner, and what its last column shows."""
    blocks = [("all rounds", [entry["overall"] for entry in learners], SECONDS)]
    domains = learners[0]["domains"]
    if len(domains) > 1:
        for at, domain in enumerate(domains):
            own = [entry["domains"][at] for entry in learners]
            blocks.append((domain["name"], own, ""))
            if domain["last"]["rounds"] != domain["rounds"]:
                ends = [block["last"] for block in own]
                blocks.append((f"{domain['name']}, last ten rounds", ends, ""))
        after = [entry["after_changes"] for entry in learners]
        blocks.insert(1, ("first five rounds after each change", after, RECOVERS))
    if len(domains) == 1 or learners[0]["last"]["rounds"] != domains[-1]["last"]["rounds"]:
        blocks.append(("last ten rounds", [entry["last"] for entry in learners], ""))
    return blocks


def _extra(entry: dict[str, Any], column: str) -> str:
    if column == SECONDS:
        return f"{entry['seconds_per_round']:.3f}"
    if column == RECOVERS:
        rounds = entry["after_changes"]["back_by_round"]
        return "never" if None in rounds else str(max(rounds))
    return ""


def _cell(figure: dict[str, Any], digits: int = 3) -> str:
    from fairsaoml.report.words import ratio

    def short(value: float | None) -> str:
        return "-" if value is None else f"{value:.{digits}f}".removeprefix("0")

    spread = "" if figure["spread"] is None else f"±{short(figure['spread'])}"
    pooled, verdict = short(figure["pooled"]), figure.get("rule")
    if verdict is not None:
        if verdict == "missed":
            pooled = ratio(figure["pooled"]).removeprefix("0")  # never rounded up to the rule
        pooled = f"[{COLOURS.get(verdict, 'default')}]{pooled}{MARKS[verdict]}[/]"
    return f"{pooled} [dim]{short(figure['mean'])}{spread}[/]"


def _verdicts(learners: Sequence[dict[str, Any]]) -> list[str]:
    """Who meets the rule at the end of every domain, in words."""
    said = []
    for name, ratio in (("dp_ratio", "DP"), ("eo_ratio", "EO")):
        met = [entry["learner"] for entry in learners if entry["rule"][name] == "met"]
        said.append(f"{ratio} meets the rule at every domain's end: {', '.join(met) or 'nobody'}.")
    return said
