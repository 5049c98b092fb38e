"""Tables on stdout, made to fit a narrow window."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fairsaoml.cli.options import stem
from fairsaoml.evaluate.flags import left_out_words, new_groups_words
from fairsaoml.evaluate.metrics import Counts, nearly_alike, summed
from fairsaoml.evaluate.rule import MARKS, RULE, ratio_words, worst_judged

SHORT = 20  # letters of a column that is not wrapped
WRAPPED = 12  # letters of a verdict in a narrow window
RUN_TITLES = ("name", "stream", "learner", "rounds", "verdict", "when")
RATIOS = {"dp": "dp_ratio", "eo": "eo_ratio"}
COLOURS = {"met": "green", "missed": "yellow", "fair": "green", "not fair": "yellow"}


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("fairsaoml.cli", "notes"),
        undefined=StrictUndefined,
        finalize=lambda value: escape(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _say(notes: str, **values: Any) -> None:
    """Print the sentences below a table, one a line of their template; values stay as they are."""
    template = _templates().get_template(f"{notes}.txt")
    for line in template.render(marks=MARKS, rule=RULE, **values).splitlines():
        Console().print(line, highlight=False)


def _table(*names: str, figures: Sequence[str] = (), no_wrap: bool = False) -> Table:
    """A table of names and, to their right, of figures."""
    table = Table(*names, box=None, pad_edge=False, header_style="bold")
    for title in figures:
        table.add_column(title, justify="right", no_wrap=no_wrap)
    return table


def _cell(value: float | None) -> str:
    return MARKS["undefined"] if value is None else f"{value:.3f}"


def print_summary(summary: dict[str, Any], decision: str | float = "accuracy") -> None:
    """Print figures of the whole run and of the last rounds of each domain, then the verdict.

    `decision` is the learner's setting: what helps where nearly everyone is decided alike.
    """
    bests = [(domain.get("best") or {}).get("fair_accuracy") for domain in summary["domains"]]
    titles = ("accuracy", "balanced", "DP ", "EO ", *(["best fair"] if any(bests) else []))
    table = _table(escape(f"{summary['learner']} on {summary['stream']}"), figures=titles)

    def ratio(value: float | None, pooled: dict[str, Any], notion: str) -> str:
        few = any(reason.startswith(notion) for reason in pooled.get("insufficient") or ())
        colour = "yellow" if value is not None and value < RULE and not few else "default"
        return f"[{colour}]{_cell(value)}[/]{MARKS['too few'] if few else ' '}"

    rows = [("all rounds", summary["overall"], None)]
    for domain, best in zip(summary["domains"], bests, strict=True):
        first, last = domain["last"]["rounds"]
        rows.append((domain["name"] or f"last {last - first + 1}", domain["last"], best))
    for name, block, best in rows:
        pooled, windows = block["pooled"], block.get("windows") or block["pooled"]
        table.add_row(
            escape(name),  # a domain may be called [/north]
            _cell(pooled["accuracy"]),
            _cell(pooled["balanced_accuracy"]),
            ratio(windows["dp_ratio"], pooled, "dp"),
            ratio(windows["eo_ratio"], pooled, "eo"),
            *([_cell(best)] if any(bests) else []),
        )
    Console().print(table)
    last = summary.get("last") or summary["overall"]
    where = " in rounds {} to {}".format(*last["rounds"])
    totals = [(_total(summary["overall"]), ""), (_total(last), where)]
    verdict = summary.get("verdict") or {}
    unknown = {name: _unknown(block["pooled"]) for name, block, _ in rows}
    _say(
        "summary",
        decision=decision,
        unknown={name: reasons for name, reasons in unknown.items() if reasons},
        alike=next((one for one in totals if nearly_alike(one[0])), None),
        percent="{:.1%}".format,
        domains=len(bests),
        verdict=verdict,
        colours=COLOURS,
        warnings=[*new_groups_words(verdict), *left_out_words(summary)],
    )


def _unknown(pooled: dict[str, Any]) -> list[str]:
    """Why DP or EO is not known, the first reason of each attribute."""
    reasons: dict[str, str] = {}
    for words in pooled.get("undefined") or ():
        figure, _, reason = words.partition(" of ")
        if figure.startswith(tuple(RATIOS)):
            reasons.setdefault(reason.partition(":")[0], reason)
    return list(reasons.values())


def _total(block: dict[str, Any]) -> Counts:
    """The counts of all rows; every attribute counts the same ones."""
    attributes = (block["pooled"].get("counts") or {}).values()
    return summed(Counts(**six) for groups in list(attributes)[:1] for six in groups.values())


def print_rows(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table."""

    # A name that is cut short cannot be typed; what is long is wrapped rather than what is not.
    def is_short(title: str, *cells: str) -> bool:
        return max(map(len, [title, *cells])) <= SHORT

    Console().print(_texts(titles, rows, is_short))


def _texts(
    titles: Iterable[str], rows: Sequence[Sequence[str]], is_whole: Callable[..., bool]
) -> Table:
    """A table of texts as they are; a column of which `is_whole(title, *cells)` is not wrapped."""
    table = _table()
    for column in zip(titles, *rows, strict=True):
        table.add_column(column[0], overflow="fold", no_wrap=is_whole(*column))
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def print_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of runs whose names stay whole, so that they can be copied.

    Where the window has no room for everything, what the names repeat goes first, then the time of
    day, then the verdict is wrapped, then further columns go.
    """
    console = Console()
    shown = {title: [str(run[title]) for run in runs] for title in RUN_TITLES}
    for place, run in enumerate(runs):
        if groups := run.get("not_judged"):
            shown["verdict"][place] += f", {', '.join(groups)} not judged"
    told = [
        title
        for title in ("learner", "stream")
        if all(stem(part) in name for name, part in zip(shown["name"], shown[title], strict=True))
    ]
    shorter: dict[str, Callable[[str], str]] = {
        "when": lambda when: when.split(" ")[0],
        "verdict": lambda words: "\n".join(textwrap.wrap(words, WRAPPED)),
    }
    rest = ("learner", "stream", "when", "rounds", "verdict")
    steps, dropped = [*told, *shorter, *(title for title in rest if title not in told)], []
    unbounded = console.options.update(max_width=sys.maxsize)

    def table() -> Table:
        rows = [*zip(*shown.values(), strict=True)]
        return _texts(shown, rows, lambda title, *_: title != "name")

    while steps and console.measure(table(), options=unbounded).maximum > console.width:
        title = steps.pop(0)
        if title in shorter:
            shown[title] = list(map(shorter.pop(title), shown[title]))
        else:
            del shown[title]
            dropped.append(title)
    console.print(table())
    if dropped:
        console.print(
            f"[dim]A wider window, or --json, has more: {', '.join(dropped)}.[/]", highlight=False
        )


def print_regret(measured: dict[str, Any]) -> None:
    """Print regret and sums of violations, a row for each length of windows."""
    solved, constraints = measured["comparator"] is not None, measured["constraints"]
    titles = ["window"] + ["FairSAR", "rounds", "SAR"] * solved
    titles += [escape(f"sum of {name}") for name in constraints]
    titles += ["rounds of the largest" if len(constraints) > 1 else "rounds"] * bool(constraints)
    rows = []
    for entry in measured["windows"]:
        row = [str(entry["window"])]
        if solved:
            fair = entry["fair_regret"]
            row += [_figure(fair), _rounds(fair), _figure(entry["regret"])]
        violations = entry["violation"].values()
        row += map(_figure, violations)
        if violations:
            row.append(_rounds(max(violations, key=itemgetter("high"))))
        rows.append(row)
    head = escape(f"{measured['learner']} on {measured['stream']}, {measured['form']}")
    Console().print(f"[bold]{head}[/]", highlight=False)
    print_rows(titles, rows)
    _say("regret", words=_figure, **measured)


def _figure(figure: dict[str, Any]) -> str:
    half = (figure["high"] - figure["low"]) / 2
    return f"{figure['mean']:.3f}" + (f" ±{half:.3f}" if half else "")


def _rounds(figure: dict[str, Any]) -> str:
    return "{}-{}".format(*figure["rounds"])


def print_comparison(comparison: dict[str, Any], elsewhere: str = "") -> None:
    """Print one table with a row for each learner, and which of them to take.

    `elsewhere` says which learners are not in it, and how to see them.
    """
    learners = comparison["learners"]
    changes = "after_changes" in learners[0]
    figures = ("accuracy", "balanced", "DP", "EO", *(["back by"] if changes else []), "s")
    table = _table("", figures=figures, no_wrap=True)
    for entry in learners:
        cells = [_share(entry["overall"][name]) for name in ("accuracy", "balanced_accuracy")]
        cells += [_ratio(_worst_end(entry, name)) for name in RATIOS.values()]
        if changes:
            rounds = entry["after_changes"]["back_by_round"]
            cells.append("never" if None in rounds else str(max(rounds)))
        table.add_row(escape(entry["learner"]), *cells, f"{entry['seconds_per_round']:.3f}")
    Console().print(table)
    _say(
        "comparison",
        seeds=len(comparison["seeds"]),
        changes=changes,
        words=recommendation(learners),
        elsewhere=elsewhere,
    )


def recommendation(learners: Sequence[dict[str, Any]]) -> str:
    """Which learner to take on this stream, and why; by the notions asked for, or else by EO.

    >>> def row(name, eo, accuracy):
    ...     end = {"eo_ratio": {"ratio": eo, "rule": "met" if eo >= 0.8 else "missed"}}
    ...     figures = {"balanced_accuracy": {"pooled": accuracy}}
    ...     return {"learner": name, "domains": [{"last": end}], "overall": figures}
    >>> recommendation([row("a", 0.9, 0.7), row("b", 0.8, 0.6), row("c", 0.5, 0.8)])
    'Take a: the highest balanced accuracy (0.700) of those whose EO surely meets the 80 % rule.'
    >>> recommendation([row("c", 0.5, 0.8), row("d", 0.7, 0.6)])
    'Take none as it is: no EO is known to meet the 80 % rule; d comes nearest (0.70).'
    """
    given = [entry.get("settings", {}).get("constraints") for entry in learners]
    asked = {name for names in given if names for name in str(names).split("+")}
    notions = [name for name in RATIOS if name in asked] or ["eo"]
    words = " and ".join(name.upper() for name in notions)
    where = " in every domain" if len(learners[0]["domains"]) > 1 else ""

    def verdicts(entry: dict[str, Any]) -> set[str]:
        return {_worst_end(entry, RATIOS[name])["rule"] for name in notions}

    def lowest(entry: dict[str, Any]) -> float:
        return min(_worst_end(entry, RATIOS[name])["ratio"] or 0.0 for name in notions)

    def accuracy(entry: dict[str, Any]) -> float:
        return entry["overall"]["balanced_accuracy"]["pooled"] or 0.0

    if fair := [entry for entry in learners if verdicts(entry) == {"met"}]:
        best = max(fair, key=accuracy)
        why = f"the highest balanced accuracy ({accuracy(best):.3f}) of those whose {words}"
        return f"Take {best['learner']}: {why} surely meets the 80 % rule{where}."
    best = max(learners, key=lowest)
    nearest = f"{best['learner']} comes nearest ({ratio_words(lowest(best))})"
    return f"Take none as it is: no {words} is known to meet the 80 % rule{where}; {nearest}."


def _worst_end(entry: dict[str, Any], name: str) -> Mapping[str, Any]:
    """A ratio in the last rounds of the domain whose verdict, and then whose ratio, is worst."""
    return worst_judged(domain["last"][name] for domain in entry["domains"])


def _share(figure: dict[str, Any]) -> str:
    def short(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}".removeprefix("0")

    spread = figure["pooled_spread"]
    return short(figure["pooled"]) + ("" if spread is None else f"[dim]±{short(spread)}[/]")


def _ratio(figure: Mapping[str, Any]) -> str:
    words = "" if figure["ratio"] is None else ratio_words(figure["ratio"]).removeprefix("0")
    verdict = figure["rule"]
    return f"[{COLOURS.get(verdict, 'default')}]{words}{MARKS[verdict]}[/]"
