"""How accurate and how fair: runs and alternatives side by side, domain by domain.

Every figure is of counts pooled over rounds and seeds. Beside it stands the standard deviation over
seeds of the same figure, pooled over each seed's rounds alone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.compare.compare import pooled_spread
from fairsaoml.files import read_json
from fairsaoml.report.reading import Run, read_run

__all__ = ["DETAILS", "Row", "alternatives_on", "quality", "quality_text", "short", "table"]

OVERVIEW = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "dp_ratio": "DP",
    "eo_ratio": "EO",
}
MEASURES = {**OVERVIEW, "eo_ratio_tpr": "TPR ratio", "eo_ratio_fpr": "FPR ratio"}
DETAILS = "## Domain by domain"  # what follows may be folded away


class Row(NamedTuple):
    """A run in a table: its name there, and whose it is: "ours", "paper" or "alternative"."""

    label: str
    kind: str
    run: Run


def alternatives_on(stream: str, folder: Path) -> list[Row]:
    """Return the finished runs of other libraries' models on a stream, from below `folder`."""
    return [
        Row(summary.parent.name, "alternative", read_run(summary.parent))
        for summary in sorted(folder.glob("*/*/summary.json"))
        if read_json(summary).get("stream") == stream
    ]


def quality(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return each row's figures: of all rounds, each domain, each domain's last ten rounds."""
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
                    "figures": _figures(row.run, block.first, block.last, block.figures["pooled"]),
                }
                for block in row.run.blocks
            ],
        }
        for row in rows
    ]


def _figures(run: Run, first: int, last: int, pooled: Mapping[str, Any]) -> dict[str, Any]:
    spread = pooled_spread([line for line in run.lines if first <= line["round"] <= last])
    return {
        name: {"pooled": pooled.get(name), "spread": spread[name]}
        for name in (*MEASURES, "positive_rate")
    }


def quality_text(streams: Mapping[str, Sequence[Mapping[str, Any]]], *, seen: bool) -> str:
    """Return the same as Markdown: an overview of each stream, then all figures of every block.

    Args:
        streams: the result of `quality` for each stream.
        seen: whether settings were chosen on rows of a stream's first domain, which is then marked.
    """
    parts = [
        "Pooled over rounds and seeds; ± the standard deviation over seeds. DP and EO: the lowest "
        "group's rate divided by the highest's, 1 is fair; EO is the worse of true and of false "
        "positive rates. Ours in **bold**, the paper's seven plain, other libraries' models in "
        "*italics*." + (" † Settings were chosen on rows of this domain." if seen else "")
    ]
    for stream, rows in streams.items():
        parts += [f"### {stream}", _overview(rows, seen)]
    parts.append(DETAILS)
    for stream, rows in streams.items():
        for block in rows[0]["blocks"]:
            mark = " †" if seen and _is_first(block, rows[0]) else ""
            parts += [f"### {stream}: {block['title']}{mark}", _block_table(rows, block["title"])]
    return "\n\n".join(parts) + "\n"


def _is_first(block: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a block lies in the stream's first domain, of several."""
    domains = [other["domain"] for other in row["blocks"] if other["domain"] is not None]
    return block["domain"] is not None and block["domain"] == domains[0]


def _overview(rows: Sequence[Mapping[str, Any]], seen: bool) -> str:
    """One row for each learner; each cell has the domains one after another."""
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
                digits = 3 if "accuracy" in measure else 2
                values = [_with_spread(block["figures"][measure], digits) for block in blocks]
                cells.append(", ".join(values))
        body.append(cells)
    order = f"Domains in their order: {', '.join(named)}.\n\n" if len(domains) > 1 else ""
    return order + table(head, body)


def _block_table(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    body = [
        [_name(row), *(_with_spread(block["figures"][name]) for name in MEASURES)]
        for row in rows
        for block in row["blocks"]
        if block["title"] == title
    ]
    return table(["", *MEASURES.values()], body)


def _name(row: Mapping[str, Any]) -> str:
    return {"ours": "**{}**", "alternative": "*{}*"}.get(row["kind"], "{}").format(row["label"])


def _with_spread(figure: Mapping[str, float | None], digits: int = 3) -> str:
    spread = figure["spread"]
    return short(figure["pooled"], digits) + ("" if spread is None else f" ± {short(spread)}")


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
