"""`python -m paper`: repeat the paper's evaluation, or search for settings."""

import typer

from fairsaoml.cli import run_app
from paper import cli_alternatives, cli_reproduce, cli_tune

app = typer.Typer(name="paper", help=__doc__, no_args_is_help=True, add_completion=False)
app.command("reproduce")(cli_reproduce.reproduce)
app.command("tune")(cli_tune.tune)
app.command("alternatives")(cli_alternatives.alternatives)

if __name__ == "__main__":
    run_app(app)
