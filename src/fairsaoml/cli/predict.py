"""`fairsaoml predict`: score new rows with what a run has learned."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fairsaoml.cli.output import piped

__all__ = ["predict"]


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    file: Annotated[
        str, typer.Argument(help="New rows: CSV or Parquet, columns as learned; - reads stdin.")
    ],
    seed: Annotated[int | None, typer.Option(help="Which seed's model. \\[the first]")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns of the new rows to keep: id,name.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why: threshold, fairness, columns that counted.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A file ending in .csv, .jsonl or .parquet. \\[CSV on standard output]"),
    ] = None,
) -> None:
    """Score new rows: a calibrated probability and the decision for each, in the label's words."""
    from fairsaoml.serve.predict import (
        check_ending,
        decision_table,
        predict_rows,
        to_bytes,
        write_decisions,
    )

    if out is not None:
        check_ending(out)
    with piped(file) as path:
        predicted = predict_rows(folder, path, seed=seed, explain=explain)
    for note in predicted.notes:
        typer.echo(note, err=True)
    table = decision_table(predicted, keep.split(",") if keep else ())
    if out is None:
        sys.stdout.write(to_bytes(table).decode())
    else:
        write_decisions(table, out)
        typer.echo(f"{table.num_rows} rows: {out}", err=True)
