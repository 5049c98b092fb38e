"""`fairsaoml report`: the page of one run, or of several overlaid."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file. [DIR/report.html]")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also write a small SVG picture.")] = None,
) -> None:
    """Write the report of one run, or of several overlaid, as one HTML file."""
    from fairsaoml.report import write_picture, write_report

    shared = folders[0] if len(folders) == 1 else Path(folders[0]).parent
    typer.echo(f"report: {write_report(folders, out or shared / 'report.html')}")
    if picture is not None:
        write_picture(folders, picture)
        typer.echo(f"picture: {picture}")
