"""The commands of `python -m paper`: parse, call one function, print.

Everything heavy is imported inside the commands, so that `--help` does not load JAX.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from fairsaoml.cli import options
from fairsaoml.cli.options import Quiet, flag, parse_settings, print_json, stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.tables import print_comparison

__all__ = ["app"]

NAME_LENGTH = 60  # letters of a run's name in the progress display

app = typer.Typer(
    name="python -m paper",
    help="Repeat the evaluation of the paper, or search for a learner's settings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]


@app.command("reproduce")
def reproduce(
    what: str = Argument("all", help="all, or an exhibit such as figure-3."),
    out: Path = Option(Path("runs/paper"), help="Where runs, figures and tables go."),
    seeds: int = Option(10, min=1, help="How many seeds."),
    streams: str | None = Option(None, help="Which streams: A,B. [the paper's three]"),
    learners: str | None = Option(None, help="Which learners: A,B. [the paper's seven and ours]"),
    set_: list[str] = Option(
        [], "--set", help="key=value, for the streams and every learner that has it."
    ),
    jobs: options.Jobs = 2,
    engine: options.Engine = "local",
    address: options.Address = None,
    force: bool = flag("--force", help="Run and measure again."),
    quiet: Quiet = False,
) -> None:
    """Repeat the paper's evaluation: figures, tables, and one page that shows them all.

    Finished runs are kept: a second call only draws, and the same command continues an evaluation
    that was stopped.
    """
    from paper import plan
    from paper.reproduce import reproduce

    exhibits = list(plan.EXHIBITS.values()) if what == "all" else [plan.exhibit(what)]
    choice = plan.Choice(
        streams=streams.split(",") if streams else plan.STREAMS,
        learners=learners.split(",") if learners else plan.LEARNERS,
        seeds=seeds,
        settings=parse_settings(set_),
    )
    specs = [job.spec for job in plan.jobs_of(exhibits, choice, out)]
    names = [f"{spec.stream}: {spec.name}"[:NAME_LENGTH] for spec in specs]
    with progress(names, seeds, quiet=quiet) as on_event:
        page = reproduce(
            exhibits,
            choice,
            out,
            engine=engine,
            workers=jobs,
            address=address,
            force=force,
            on_event=on_event,
            say=_say(quiet),
        )
    typer.echo(f"page: {page}")


@app.command("tune")
def tune(
    stream: str = Argument(
        help="A stream's name (`fairsaoml streams`), or a table's file; several with commas."
    ),
    learner: str = Option(help="Which learner (`fairsaoml learners`)."),
    trials: int = Option(60, min=1, help="How many settings to try."),
    jobs: int = Option(2, min=1, help="How many processes try them."),
    seeds: int = Option(2, min=1, help="How many seeds for each trial."),
    set_: list[str] = Option(
        [], "--set", help="key=value: a setting of learner or stream that stays fixed."
    ),
    storage: str | None = Option(
        None, help="Where Optuna keeps the study: a database URL or a journal file."
    ),
    out: Path | None = Option(None, help="A folder. [tuning/STREAM-LEARNER]"),
    save: Path | None = Option(None, help="Write the chosen settings to this TOML file."),
    quiet: Quiet = False,
    json_: AsJson = False,
) -> None:
    """Search for accurate and fair settings on `synthetic` and on a stream's first domain.

    Later domains stay unseen. With several streams, the settings must do well on all of them.
    Trial 0 is the learner's defaults. The same command continues a search that was stopped.
    """
    from paper.tuning.learners import TuningSpec, tune_learner
    from paper.tuning.printing import print_result

    settings = parse_settings(set_)
    spec = TuningSpec(stream=stream, learner=learner, settings=settings, seeds=seeds)
    folder = out or Path("tuning") / f"{stem(stream)}-{learner}"
    result = tune_learner(
        spec,
        folder,
        trials=trials,
        jobs=jobs,
        storage=storage,
        save=save,
        on_trial=_trial_printer("", trials, quiet),
    )
    if json_:
        return print_json(result | {"folder": str(folder)})
    print_result(result)
    typer.echo(f"picture: {folder / 'front.svg'}")
    if save is not None:
        typer.echo(f"settings: {save}")


@app.command("alternatives")
def alternatives(
    stream: options.StreamName,
    names: str = Option("all", "--alternatives", help="Which: all, or A,B."),
    seeds: int = Option(1, min=1, help="How many, where anything is random."),
    every: int = Option(1, "--refit-every", min=1, help="Refit only every so many rounds."),
    trials: int = Option(60, min=1, help="How many settings to try for each."),
    set_: list[str] = Option([], "--set", help="key=value: a setting of the stream."),
    out: Path | None = Option(None, help="A folder for all of them. [runs/paper/peers/STREAM]"),
    force: bool = flag("--force", help="Replace runs in the folder."),
    quiet: Quiet = False,
    json_: AsJson = False,
) -> None:
    """Run other libraries' models with their defaults, then with tuned settings.

    They are tuned on the same rounds and with the same number of trials as our learners.
    """
    from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan
    from paper.tuning.alternatives import tuned

    chosen, settings = options.chosen(names, CATALOG), parse_settings(set_)
    specs = plan(stream, chosen, stream_settings=settings, seeds=range(seeds), every=every)
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)
    specs += [
        tuned(
            spec, folder, trials=trials, on_trial=_trial_printer(f"{spec.label}: ", trials, quiet)
        )
        for spec in specs
    ]
    with progress([spec.label for spec in specs], seeds, quiet=quiet) as on_event:
        comparison = compare_alternatives(specs, folder, force=force, on_event=on_event)
    if json_:
        return print_json(comparison | {"folder": str(folder)})
    print_comparison(comparison)
    typer.echo(f"runs: {folder}")


def _say(quiet: bool) -> Callable[[str], None]:
    """Print to stderr, or do nothing."""
    return (lambda words: None) if quiet else (lambda words: print(words, file=sys.stderr))


def _trial_printer(label: str, trials: int, quiet: bool) -> Callable[[Any], None]:
    """A callback that prints one line for each finished trial."""
    say = _say(quiet)
    return lambda trial: say(
        f"{label}trial {trial.number + 1} of {trials}: accuracy {trial.scores.accuracy:.3f}, "
        f"ratio {trial.scores.ratio:.2f}, {trial.seconds:.0f} s"
    )
