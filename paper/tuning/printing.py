"""The result of a search as tables on the terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from fairsaoml.cli.tables import print_rows
from paper.tables import short

__all__ = ["print_result"]

DETAILED = 2  # with more streams than this, a line has room for two figures of each
ALL_FIGURES = {"accuracy": "acc", "balanced_accuracy": "bal", "dp_ratio": "DP", "eo_ratio": "EO"}
MAIN_FIGURES = {"accuracy": "acc", "ratio": "ratio"}


def print_result(result: dict[str, Any]) -> None:
    """Print the trials on the front, stream by stream, and what the chosen settings change.

    Args:
        result: the content of `trials.json`.
    """
    console, chosen = Console(), result["chosen"]
    shown = [
        trial
        for trial in result["trials"]
        if trial["on_front"] or trial["is_default"] or trial["trial"] == chosen["trial"]
    ]
    shown.sort(key=lambda trial: -trial["accuracy"])
    streams = list(shown[0]["streams"])
    figures = ALL_FIGURES if len(streams) <= DETAILED else MAIN_FIGURES
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for title in ("trial", "accuracy", "ratio", *[*figures.values()] * len(streams), ""):
        table.add_column(title, justify="right")
    for trial in shown:
        cells = [str(trial["trial"]), short(trial["accuracy"]), short(trial["ratio"], 2)]
        for scores in trial["streams"].values():
            cells += [short(scores[name], 3 if "accuracy" in name else 2) for name in figures]
        marks = ["chosen"] * (trial["trial"] == chosen["trial"])
        marks += ["default"] * trial["is_default"]
        table.add_row(*cells, ", ".join(marks))
    console.print(f"[bold]{result['learner']}[/]: the front", highlight=False)
    console.print(table)
    notes = {
        f"trial {trial['trial']}, {stream}: {note}."
        for trial in shown
        for stream, scores in trial["streams"].items()
        for note in scores["notes"]
    }
    means = f"The first two figures are means over: {', '.join(streams)}; then each by itself."
    for words in (means, *sorted(notes), f"Chosen: {result['rule']}."):
        console.print(words, style="dim", highlight=False)
    rows = [
        [key, str(result["default"].get(key, "")), str(value)]
        for key, value in chosen["settings"].items()
    ]
    print_rows(["setting", "default", "chosen"], rows)
