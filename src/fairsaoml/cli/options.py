"""The arguments and options that several commands share."""

from typing import Annotated

import typer

__all__ = [
    "Address",
    "AsJson",
    "Engine",
    "Force",
    "Jobs",
    "Quiet",
    "StreamName",
    "StreamSettings",
]

StreamName = Annotated[
    str, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
]
StreamSettings = Annotated[
    list[str] | None, typer.Option("--set", help="key=value: a setting of the stream.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing runs in the folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many runs at a time.")]
Engine = Annotated[str, typer.Option(help="Where to run: local, or dask.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler's address, such as tcp://10.0.0.1:8786.")
]
