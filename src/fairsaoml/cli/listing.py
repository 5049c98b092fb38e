"""`fairsaoml learners` and `fairsaoml streams`: names, descriptions and settings."""

from typing import Annotated, Any

import typer

from fairsaoml.cli.options import AsJson
from fairsaoml.cli.output import print_json

__all__ = ["learners", "streams"]


def learners(
    name: Annotated[str | None, typer.Argument(help="Show this learner's settings.")] = None,
    json_: AsJson = False,
) -> None:
    """List the learners, or the settings of one."""
    from fairsaoml.cli.tables import print_rows
    from fairsaoml.learners import registry

    known = registry.registered() if name is None else {name: registry.entry(name)}
    listed: list[dict[str, Any]] = [
        {
            "name": key,
            "summary": entry.summary,
            "reference": entry.reference,
            "default": key == registry.DEFAULT,
            "settings": _settings(entry.config),
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


def _settings(config: type) -> list[dict[str, Any]]:
    from dataclasses import fields

    return [
        {
            "name": item.name,
            "default": list(item.default) if isinstance(item.default, tuple) else item.default,
            "meaning": item.metadata["meaning"],
            "expected": item.metadata["rule"].expected,
        }
        for item in fields(config)
    ]


def streams(json_: AsJson = False) -> None:
    """List the streams and their settings."""
    from fairsaoml.cli.tables import print_rows
    from fairsaoml.streams import catalog

    listed: list[dict[str, Any]] = [
        {"name": name, "summary": entry.summary, "settings": catalog.setting_names(name)}
        for name, entry in catalog.STREAMS.all().items()
    ]
    if json_:
        print_json(listed)
        return
    rows = [[item["name"], item["summary"], ", ".join(item["settings"])] for item in listed]
    rows.append(["FILE.csv, FILE.parquet", catalog.TABLE.summary, "see fairsaoml run --help"])
    print_rows(["stream", "what it is", "settings"], rows)
