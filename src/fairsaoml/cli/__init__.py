"""The command `fairsaoml`: parse, call one function, print.

Everything heavy is imported inside the commands: `fairsaoml --help` must not load JAX.
"""

import sys
import warnings
from typing import Annotated

import typer

from fairsaoml.cli import compare, data, learn, listing, peers, predict, regret, report, run, serve
from fairsaoml.cli.first_page import FirstPage
from fairsaoml.core.errors import ConfigError, FairSAOMLError

__all__ = ["app", "main", "run_app"]

LONGEST = 2000  # letters of an error: a file of one line may be its own column's name

app = typer.Typer(
    name="fairsaoml",
    cls=FirstPage,
    help="Online learners that stay accurate and fair while the world changes under them.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("learn")(learn.learn)
app.command("runs")(learn.runs)
app.command("compare")(compare.compare)
app.command("peers")(peers.peers)
app.command("regret")(regret.regret)
app.command("report")(report.report)
app.command("predict")(predict.predict)
app.command("serve")(serve.serve)
app.command("learners")(listing.learners)
app.command("streams")(listing.streams)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"fairsaoml {version('fairsaoml')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command `fairsaoml`; does not return."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run an app and exit: 0 on success, 1 on failure, 2 on wrong usage, 130 on Ctrl-C."""
    # People read these: say what, not where in the code.
    warnings.formatwarning = lambda message, *_: f"fairsaoml: warning: {message}\n"
    try:
        for word in sys.argv:
            if not word.isprintable() and _encoded(word) is None:
                raise ConfigError(
                    f"expected words and file names in UTF-8, got {word!r}; rename the file"
                )
        app()
    except ConfigError as error:
        _fail(error, 2)
    except FairSAOMLError as error:
        _fail(error, 130 if type(error).__name__ == "Interrupted" else 1)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong. Keep Python from flushing into it.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a full disk, a folder that may not be written
        _fail(error, 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _encoded(word: str) -> bytes | None:
    """A word of the command line as UTF-8; None where it is not UTF-8."""
    try:
        return word.encode()
    except UnicodeEncodeError:
        return None


def _fail(error: Exception, code: int) -> None:
    words = " ".join(str(error).split("\n"))
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
    typer.echo(f"fairsaoml: {words.encode(errors='backslashreplace').decode()}", err=True)
    sys.exit(code)
