"""What commands have in common: arguments and options, settings, input and JSON on stdout."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fairsaoml.core.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])

STREAM = "A stream's name (`fairsaoml streams`), or a table's file."
StreamName = Annotated[str, typer.Argument(help=STREAM)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing runs in the folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many runs at a time.")]
Engine = Annotated[str, typer.Option(help="Where to run: local, or dask.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler's address, such as tcp://10.0.0.1:8786.")
]
flag = partial(typer.Option, False)
WORDS = {"none": None, "null": None, "true": True, "false": False}


# Options that several commands have, shown together in their help: of each its type and meaning.
PANELS: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
TYPES: Mapping[str, Any] = {"str": str, "int": int, "float": float, "list": list[str]}


def takes(*panels: str) -> Callable[[Command], Command]:
    """Give a command the options of panels, in place of its `**panels`."""

    def decorate(command: Command) -> Command:
        own = signature(command)
        parameters = [one for one in own.parameters.values() if one.kind != one.VAR_KEYWORD]
        for panel in map(PANELS.__getitem__, panels):
            for name, (kind, help) in panel["options"].items():
                option = typer.Option(None, help=help, rich_help_panel=panel["title"])
                keyword, annotation = Parameter.KEYWORD_ONLY, TYPES[kind] | None
                parameters.append(Parameter(name, keyword, default=option, annotation=annotation))
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _used(panel: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a panel that were used."""
    return {name: given[name] for name in PANELS[panel]["options"] if given[name] not in (None, [])}


def parse_value(text: str) -> Any:
    """Return a number, a list, true, false or none if the text reads as one; else the text.

    >>> [parse_value(text) for text in ("0.1", "20", "none", "[40, 40]", "dp+eo", "2014-2016")]
    [0.1, 20, None, [40, 40], 'dp+eo', '2014-2016']
    """
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float | list) else text


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings of `--set` options; the last value of a key counts.

    Raises:
        ConfigError: a pair without a key or an equals sign.
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"expected --set key=value, got {pair!r}; such as tolerance=0.05")
        settings[key.strip()] = parse_value(value.strip())
    return settings


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file: `learner`, `seeds`, `seed` and settings, all top level.

    Raises:
        ConfigError: no such file, not TOML, or a file with sections.
    """
    import tomllib

    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"expected a TOML file at {path}, got {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}; write lines such as seeds = 5") from None
    for key, value in content.items():
        if isinstance(value, dict):
            raise ConfigError(
                f"{path}: expected all settings at the top level, got a section [{key}]; "
                "write its lines without the heading"
            )
    return content


def table_settings(stream: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a table's stream, from a command's options.

    Raises ConfigError if the stream is not a table, and DataError if its file is not there.
    """
    from fairsaoml.streams.catalog import is_table, require_file

    table = _used("table", given)
    require_file(stream)  # before anything else is asked
    if table and not is_table(stream) and not Path(stream).is_file():
        option = next(iter(table)).replace("_", "-")
        raise ConfigError(f"--{option} is for a table of your own, not for {stream!r}")
    lists = {name: table[name].split(",") for name in table.keys() & {"drop", "columns"}}
    return table | lists


def decision_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a learner, from a command's options.

    Raises ConfigError if they contradict each other.
    """
    settings = _used("rule", given)
    costs = [settings.pop(f"cost_false_{error}", None) for error in ("positive", "negative")]
    if "decision" in settings and costs != [None, None]:
        raise ConfigError("expected --decision or costs, got both; give one of them")
    if "decision" in settings:
        settings["decision"] = parse_value(settings["decision"])
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
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read()
        path = Path(folder) / ("stdin.parquet" if content.startswith(b"PAR1") else "stdin.csv")
        path.write_bytes(content)
        yield path


def print_json(result: Any) -> None:
    """Print plain data as JSON."""
    typer.echo(json.dumps(result, indent=2))
