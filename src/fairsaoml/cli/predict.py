"""`fairsaoml predict`: score new rows with what a run has learned."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["predict"]


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    file: Annotated[Path, typer.Argument(help="New rows: CSV or Parquet, columns as learned.")],
    seed: Annotated[int | None, typer.Option(help="Which seed's model. [the first]")] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file. [standard output]")] = None,
) -> None:
    """Score new rows: a calibrated probability and the decision for each."""
    from fairsaoml.files import write_text
    from fairsaoml.runs.predict import predict_rows

    scores, decisions, notes = predict_rows(folder, file, seed=seed)
    for note in notes:
        typer.echo(note, err=True)
    lines = [
        f"{row},{score:.6f},{decision:d}"
        for row, (score, decision) in enumerate(zip(scores, decisions, strict=True))
    ]
    text = "\n".join(["row,score,prediction", *lines]) + "\n"
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        typer.echo(f"{len(lines)} rows: {out}", err=True)
