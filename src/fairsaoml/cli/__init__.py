"""The command `fairsaoml`: parse, call one function, print.

Everything heavy is imported inside the commands: `fairsaoml --help` must not load JAX.
"""

import gc
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from fairsaoml.cli import data, folders, run
from fairsaoml.cli.options import flag
from fairsaoml.core.errors import ConfigError, FairSAOMLError

__all__ = ["app", "main", "run_app"]

LONGEST = 2000  # letters of an error: a file of one line may be its own column's name
SEARCHED = 500_000  # new objects, after which garbage is searched for
WHOLE = 200  # characters: a command's sentence is wrapped, not cut


class FirstPage(TyperGroup):
    """The help of `fairsaoml` itself, as plain text: each command with its whole first sentence.

    The framed help of the commands takes longer to load than everything else on this page.
    """

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            commands = self.commands.items()
            formatter.write_dl([(name, one.get_short_help_str(WHOLE)) for name, one in commands])


app = typer.Typer(
    name="fairsaoml",
    cls=FirstPage,
    help="Online learners that stay accurate and fair while the world changes under them.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    run.run,
    run.learn,
    folders.runs,
    run.compare,
    run.peers,
    folders.regret,
    folders.report,
    folders.predict,
    folders.serve,
    data.learners,
    data.streams,
):
    app.command()(command)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"fairsaoml {version('fairsaoml')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = flag("--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command `fairsaoml`; does not return."""
    # What is imported stays: a tenth of a start went into searches for garbage in it.
    gc.set_threshold(SEARCHED)
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run an app and exit: 0 on success, 1 on failure, 2 on wrong usage, 130 on Ctrl-C."""
    # People read these: say what, not where in the code.
    warnings.formatwarning = lambda message, *_: f"fairsaoml: warning: {message}\n"
    try:
        for word in sys.argv:
            if any("\ud800" <= letter <= "\udfff" for letter in word):  # bytes of no letter
                raise ConfigError(
                    f"expected words and file names in UTF-8, got {word!r}; rename the file"
                )
        app()
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong. Keep Python from flushing into it.
        sys.stderr.close()
        sys.exit(0)
    except (FairSAOMLError, OSError) as error:  # OSError: a full disk, a folder not to be written
        words = " ".join(str(error).split("\n"))
        words = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
        typer.echo(f"fairsaoml: {words.encode(errors='backslashreplace').decode()}", err=True)
        if isinstance(error, ConfigError):
            sys.exit(2)
        sys.exit(130 if type(error).__name__ == "Interrupted" else 1)
    except KeyboardInterrupt:
        sys.exit(130)
