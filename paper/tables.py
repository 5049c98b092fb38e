"""How good and how fair, in numbers: runs and peers side by side, stretch by stretch.

Every figure is of counts pooled over rounds and seeds. Beside it stands how far the seeds stray:
the standard deviation of the same figure pooled over each seed's rounds alone.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

from fairsaoml.evaluate.metrics import GroupCounts, add, counts_from_json, figures
from fairsaoml.files import read_json
from fairsaoml.report.reading import Run, read_run

__all__ = ["DETAILS", "MEASURES", "Row", "peers_of", "quality", "quality_text"]

MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "dp_ratio": "DP",
    "eo_ratio": "EO",
}
DETAILS = "## Stretch by stretch"  # what follows may be folded away
OVERVIEW = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "dp_ratio": "DP",
    "eo_ratio": "EO",
}


class Row(NamedTuple):
    """A run in a table: its name there, and whose it is: "ours", "paper" or "peer"."""

    label: str
    kind: str
    run: Run


def peers_of(stream: str, folder: Path) -> list[Row]:
    """What was played by others on a stream, if anything: folders with a summary below `folder`."""
    found = []
    for summary in sorted(folder.glob("*/*/summary.json")):
        if read_json(summary).get("stream") == stream:
            found.append(Row(summary.parent.name, "peer", read_run(summary.parent)))
    return found


def quality(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Each row's figures by stretch: all rounds, each domain, each domain's last ten rounds."""
    return [
        {
            "label": row.label,
            "kind": row.kind,
            "command": row.run.spec.get("command"),
            "seeds": len(row.run.seeds),
            "blocks": [
                {
                    "title": block.title,
                    "domain": block.domain,
                    "end": block.end,
                    "rounds": [block.first, block.last],
                    "figures": _figures(row.run, block.first, block.last, block.figures.pooled),
                }
                for block in row.run.blocks
            ],
        }
        for row in rows
    ]


def _figures(run: Run, first: int, last: int, pooled: Mapping[str, Any]) -> dict[str, Any]:
    by_seed: dict[int, GroupCounts] = {}
    for line in run.lines:
        if first <= line["round"] <= last:
            counts = counts_from_json(line["counts"])
            by_seed[line["seed"]] = reduce(add, [by_seed.get(line["seed"], {}), counts])
    of_seeds = [figures(counts) for counts in by_seed.values()]

    def spread(name: str) -> float | None:
        known = [found[name] for found in of_seeds if found[name] is not None]
        return stdev(known) if len(known) > 1 else None

    names = (*MEASURES, "eo_ratio_tpr", "eo_ratio_fpr", "positive_rate")
    return {name: {"pooled": pooled.get(name), "spread": spread(name)} for name in names}


def quality_text(streams: Mapping[str, Sequence[Mapping[str, Any]]], *, seen: bool) -> str:
    """The same as Markdown: an overview of each stream, then every stretch by itself.

    `seen`: whether settings were chosen on rows of a stream's first domain, which is then marked.
    """
    parts = [
        "Pooled over rounds and seeds; ± the standard deviation over seeds. DP and EO: the lowest "
        "group's rate divided by the highest's, 1 is fair; EO is the worse of true and of false "
        "positive rates. Ours in **bold**, the paper's seven plain, outside peers in *italics*."
        + (" † Settings were chosen on rows of this domain." if seen else "")
    ]
    for stream, rows in streams.items():
        parts += [f"### {stream}", _overview(rows, seen)]
    parts.append(DETAILS)
    for stream, rows in streams.items():
        for block in rows[0]["blocks"]:
            mark = " †" if seen and _is_first(block, rows[0]) else ""
            parts += [f"### {stream}: {block['title']}{mark}", _stretch(rows, block["title"])]
    return "\n\n".join(parts) + "\n"


def _is_first(block: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a stretch lies in the stream's first domain, of several."""
    domains = [found["domain"] for found in row["blocks"] if found["domain"] is not None]
    return block["domain"] is not None and block["domain"] == domains[0]


def _overview(rows: Sequence[Mapping[str, Any]], seen: bool) -> str:
    """One row a learner: the domains one after another in each cell."""
    domains = [block["domain"] for block in rows[0]["blocks"] if block["end"]]
    named = [f"{name} †" if seen and at == 0 else name for at, name in enumerate(domains)]
    head = ["", *OVERVIEW.values(), *(f"{title}, last ten" for title in OVERVIEW.values())]
    body = []
    for row in rows:
        cells = [_name(row)]
        for end in (False, True):
            blocks = [b for b in row["blocks"] if b["domain"] is not None and b["end"] == end]
            blocks = blocks or [b for b in row["blocks"] if b["domain"] is None]
            for measure in OVERVIEW:
                values = [block["figures"][measure]["pooled"] for block in blocks]
                cells.append(" ".join(short(value, 3 if "accuracy" in measure else 2)
                                      for value in values))  # fmt: skip
        body.append(cells)
    order = f"Domains in their order: {', '.join(named)}.\n\n" if len(domains) > 1 else ""
    return order + table(head, body)


def _stretch(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    head = ["", *MEASURES.values(), "TPR ratio", "FPR ratio"]
    body = []
    for row in rows:
        block = next((found for found in row["blocks"] if found["title"] == title), None)
        if block is None:
            continue
        names = (*MEASURES, "eo_ratio_tpr", "eo_ratio_fpr")
        body.append([_name(row), *(_strayed(block["figures"][name]) for name in names)])
    return table(head, body)


def _name(row: Mapping[str, Any]) -> str:
    return {"ours": "**{}**", "peer": "*{}*"}.get(row["kind"], "{}").format(row["label"])


def _strayed(figure: Mapping[str, float | None]) -> str:
    spread = figure["spread"]
    return short(figure["pooled"]) + (f" ± {short(spread)}" if spread is not None else "")


def short(value: float | None, digits: int = 3) -> str:
    """A share as it stands in a table; never rounded up to a whole.

    >>> short(0.6931), short(None), short(1.0), short(0.99996), short(0.7999, 2)
    ('.693', '–', '1', '.999', '.79')
    """
    if value is None:
        return "–"
    scale = 10**digits
    # Down where rounding would reach the rule or a whole: nothing looks better than it is.
    reached = round(value * scale) / scale
    if reached > value and reached in (0.8, 0.9, 1.0):
        reached = int(value * scale) / scale
    return f"{reached:.{digits}f}".removeprefix("0") if reached < 1 else "1"


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right.

    >>> print(table(["", "DP"], [["aod", ".5"]]))
    |  | DP |
    |:--|--:|
    | aod | .5 |
    """
    rule = "|:--|" + "--:|" * (len(head) - 1)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *body)]
    return "\n".join([lines[0], rule, *lines[1:]])
