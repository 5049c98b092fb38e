"""What commands have in common: arguments and options, names, input and JSON on stdout."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fairsaoml.cli.settings import parse_value
from fairsaoml.core.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])

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


def _option(kind: Any, panel: str, help: str) -> Any:
    return Annotated[kind, typer.Option(help=help, rich_help_panel=panel)]


def _table(kind: Any, help: str) -> Any:
    return _option(kind | None, "Your own table", help)


def _rule(kind: Any, help: str) -> Any:
    return _option(kind | None, "The decision", help)


TABLE: Mapping[str, Any] = {
    "label": _table(str, "Column to predict."),
    "positive": _table(str, "Which label is positive, where words like yes or denied do not tell."),
    "favourable": _table(str, "Is a positive decision good for a person: yes or no? \\[yes]"),
    "sensitive": _table(
        list[str], "Protected column; also race=black, 'age>40', age:18,30,50, 'sex*race'."
    ),
    "known_groups": _table(list[str], "Groups that may come later: race=other."),
    "time": _table(str, "Column that orders the rows."),
    "time_format": _table(str, "How dates are written: day/month/year, or %d.%m.%Y."),
    "tasks": _table(int, "Cut into this many tasks."),
    "every": _table(str, "Cut by time: 10D, 1W, 6H."),
    "rows": _table(int, "Cut every so many rows."),
    "domain": _table(str, "Column that names domains."),
    "drop": _table(str, "Columns to leave out: A,B."),
    "columns": _table(str, "The only columns to use: A,B."),
}
DECISION: Mapping[str, Any] = {
    "ratio": _rule(float, "The fairness asked for: lowest group's rate over the highest. [0.9]"),
    "decision": _rule(
        str, "When a row is positive: accuracy (at 0.5), balanced (at the base rate), or a number."
    ),
    "cost_false_positive": _rule(float, "Decide by costs: of a wrong yes. [1]"),
    "cost_false_negative": _rule(float, "Decide by costs: of a wrong no. [1]"),
}


def takes(options: Mapping[str, Any], into: str) -> Callable[[Command], Command]:
    """Give a command more options; it receives those that were used as the dictionary `into`."""

    def decorate(command: Command) -> Command:
        own = signature(command)
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]

        @wraps(command)
        def with_options(*words: Any, **values: Any) -> Any:
            given = {name: values.pop(name, None) for name in options}
            used = {name: value for name, value in given.items() if value not in (None, [])}
            return command(*words, **values, **{into: used})

        kept = [parameter for name, parameter in own.parameters.items() if name != into]
        with_options.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        return with_options  # type: ignore[return-value]

    return decorate


def table_settings(stream: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a table's stream, from the options that were used.

    Raises ConfigError if the stream is not a table, and DataError if its file is not there.
    """
    from fairsaoml.streams.catalog import is_table, require_file

    require_file(stream)  # before anything else is asked
    if table and not is_table(stream) and not Path(stream).is_file():
        option = next(iter(table)).replace("_", "-")
        raise ConfigError(f"--{option} is for a table of your own, not for {stream!r}")
    lists = {name: table[name].split(",") for name in ("drop", "columns") if name in table}
    return {**table, **lists}


def decision_settings(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a learner, from the options of `DECISION` that were used.

    Raises ConfigError if they contradict each other.
    """
    settings = {name: rule[name] for name in ("ratio",) if name in rule}
    costs = [rule.get(f"cost_false_{error}") for error in ("positive", "negative")]
    if "decision" in rule and costs != [None, None]:
        raise ConfigError("expected --decision or costs, got both; give one of them")
    if "decision" in rule:
        settings["decision"] = parse_value(rule["decision"])
    elif costs != [None, None]:
        from fairsaoml.runs.spec import by_costs

        settings["decision"] = by_costs(*costs)
    return settings


def stem(stream: str) -> str:
    """Return a stream's name as part of a folder's name.

    >>> stem("stop-and-frisk:BMS"), stem("data/hiring.csv.gz")
    ('stop-and-frisk-BMS', 'hiring')
    """
    return Path(stream).name.split(".")[0].replace(":", "-")


def chosen(names: str, known: Iterable[str]) -> Sequence[str]:
    """Return the names of an option such as `--learners A,B`; "all" is every known one."""
    return list(known) if names == "all" else names.split(",")


@contextmanager
def piped(file: str) -> Iterator[Path]:
    """Yield a file's path; for "-" that of a copy of standard input, CSV or Parquet."""
    if file != "-":
        from fairsaoml.streams.catalog import require_file

        require_file(file)
        yield Path(file)
        return
    import sys
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read()
        name = "stdin.parquet" if content.startswith(b"PAR1") else "stdin.csv"
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def print_json(result: Any) -> None:
    """Print plain data as JSON."""
    import json

    typer.echo(json.dumps(result, indent=2))
