"""The help of `fairsaoml` itself, as plain text.

The framed help of the commands takes longer to load than everything else on this page.
"""

from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["FirstPage"]

WHOLE = 200  # characters: a command's sentence is wrapped, not cut


class FirstPage(TyperGroup):
    """A group of commands whose help lists each with its whole first sentence."""

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
