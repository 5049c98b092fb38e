"""What there is: `fairsaoml data` (data sets, and getting them), `learners`, `streams`."""

from dataclasses import Field
from typing import Any

import typer
from typer import Argument, Option

from fairsaoml.cli.options import AsJson, print_json
from fairsaoml.cli.progress import bar

app = typer.Typer(no_args_is_help=True, help="List the data sets and get them.")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """What can be got, and what is in the data home."""
    from fairsaoml.streams.datasets.getting import list_data

    listed = list_data()
    if as_json:
        return print_json(listed)
    typer.echo(f"data home: {listed[0]['home']}")
    for data in listed:
        here = f"here: {', '.join(data['here'])}" if data["here"] else f"get it: {data['command']}"
        typer.echo(f"\n{data['name']}\n  {data['title']}\n  {here}")


@app.command()
def get(
    name: str = Argument(help="A name that `fairsaoml data list` shows."),
    source: str | None = Option(
        None, "--from", help="A file, a folder or an https address to take it from."
    ),
    years: str | None = Option(
        None, help="stop-and-frisk: such as 2014-2016 (default) or 2009,2011."
    ),
) -> None:
    """Bring a data set into the data home ($FAIRSAOML_DATA_HOME)."""
    from rich.console import Console
    from rich.progress import DownloadColumn, TransferSpeedColumn

    from fairsaoml.streams.datasets.getting import Listener, get_data

    def say(words: str) -> None:
        Console(stderr=True).print(words, markup=False, highlight=False)

    def progress(title: str) -> Any:
        say(title)
        return bar(title, DownloadColumn(), TransferSpeedColumn())

    got = get_data(name, source=source, years=years, listener=Listener(say, progress))
    for note in got.notes:
        say(note)
    for path in got.files:
        typer.echo(path)


def learners(
    name: str | None = Argument(None, help="Show this learner's settings."),
    json_: AsJson = False,
) -> None:
    """List the learners, or the settings of one."""
    from fairsaoml.cli.tables import print_rows
    from fairsaoml.learners import registry
    from fairsaoml.runs.spec import EVEN

    known = registry.registered() if name is None else {name: registry.entry(name)}
    listed: list[dict[str, Any]] = [
        {
            "name": key,
            "summary": entry.summary,
            "reference": entry.reference,
            "default": key == registry.DEFAULT,
            "settings": [_setting(item) for item in entry.settings.values()],
        }
        for key, entry in known.items()
    ]
    if json_:
        print_json(listed)
    elif name is None:
        rows = [
            [item["name"] + " (default)" * item["default"], item["summary"], item["reference"]]
            for item in listed
        ]
        print_rows(["learner", "what it does", "from"], rows)
        typer.echo(
            f"Choose {registry.DEFAULT} for a stream of your own. The others are for comparisons: "
            "`fairsaoml compare STREAM` shows them side by side."
        )
    else:
        rows = [
            [item["name"], str(item["default"]), f"{item['meaning']} ({item['expected']})"]
            for item in listed[0]["settings"]
        ]
        print_rows(["setting", "default", "meaning"], rows)
        if any(item["name"] == "decision" for item in listed[0]["settings"]):
            low, high = (round(100 * share) for share in EVEN)
            typer.echo(
                f"decision: `fairsaoml run` takes accuracy where {low} to {high} % of a table's "
                "first task are positive, and else balanced; --decision says otherwise."
            )


def _setting(item: Field) -> dict[str, Any]:
    return {
        "name": item.name,
        "default": list(item.default) if isinstance(item.default, tuple) else item.default,
        "meaning": item.metadata["meaning"],
        "expected": item.metadata["rule"].expected,
    }


def streams(json_: AsJson = False) -> None:
    """List the streams and their settings."""
    from fairsaoml.cli.tables import print_rows
    from fairsaoml.streams import catalog

    listed: list[dict[str, Any]] = [
        {"name": name, "summary": entry.summary, "settings": catalog.setting_names(name)}
        for name, entry in catalog.STREAMS.all().items()
    ]
    if json_:
        return print_json(listed)
    rows = [[item["name"], item["summary"], ", ".join(item["settings"])] for item in listed]
    rows.append(["FILE.csv, FILE.parquet", catalog.TABLE.summary, "see fairsaoml run --help"])
    print_rows(["stream", "what it is", "settings"], rows)
