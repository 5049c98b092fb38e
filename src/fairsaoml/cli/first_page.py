"""What `fairsaoml --help` shows, in plain letters.

The frames around the commands' own pages take longer to load than everything else that the first
page needs.
"""

from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["FirstPage"]

WHOLE = 200  # letters: a command's sentence is wrapped, not cut


class FirstPage(TyperGroup):
    """The commands, each with its whole sentence."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(limit=WHOLE))
                    for name, command in self.commands.items()
                ]
            )
