"""`fairsaoml data`: which data sets there are, and getting them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from fairsaoml.cli.options import AsJson
from fairsaoml.cli.output import print_json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List the data sets and get them.")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """What can be got, and what is in the data home."""
    from fairsaoml.streams.datasets.getting import list_data

    listed = list_data()
    if as_json:
        print_json(listed)
        return
    typer.echo(f"data home: {listed[0]['home']}")
    for data in listed:
        here = f"here: {', '.join(data['here'])}" if data["here"] else f"get it: {data['command']}"
        typer.echo(f"\n{data['name']}\n  {data['title']}\n  {here}")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A name that `fairsaoml data list` shows.")],
    source: Annotated[
        str | None,
        typer.Option("--from", help="A file, a folder or an https address to take it from."),
    ] = None,
    years: Annotated[
        str | None, typer.Option(help="stop-and-frisk: such as 2014-2016 (default) or 2009,2011.")
    ] = None,
) -> None:
    """Bring a data set into the data home ($FAIRSAOML_DATA_HOME)."""
    from rich.console import Console

    from fairsaoml.streams.datasets.getting import Listener, get_data

    console = Console(stderr=True)
    listener = Listener(
        say=lambda words: console.print(words, markup=False, highlight=False),
        progress=lambda title: _bar(console, title),
    )
    got = get_data(name, source=source, years=years, listener=listener)
    for note in got.notes:
        listener.say(note)
    for path in got.files:
        typer.echo(path)


@contextmanager
def _bar(console: "Console", title: str) -> Iterator[Callable[[int, int | None], None]]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    title_column = TextColumn("{task.description}")
    columns = (title_column, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
