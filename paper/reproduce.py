"""From the plan of the evaluation to its figures and tables: run what is missing, then draw."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairsaoml.compare.engine import run_all
from fairsaoml.core import intervals
from fairsaoml.files import read_json, write_json, write_text
from fairsaoml.report.reading import Run, read_run
from paper.drawing.by_round import Column, Line, draw_by_round
from paper.drawing.comparisons import Bar, Dot, draw_bars, draw_dots
from paper.drawing.cover import geometric_cover
from paper.drawing.index import Section, index_page
from paper.drawing.style import EDGE, STROKES
from paper.plan import (
    BASES,
    BOUND_LENGTHS,
    COVER,
    EXHIBITS,
    OURS,
    Choice,
    Exhibit,
    Variant,
    folder_of,
    jobs_of,
    spec_of,
)
from paper.runtime import measured, timing_file
from paper.settings import is_tuned
from paper.tables import DETAILS, Row, alternatives_on, quality, quality_text, table

__all__ = ["reproduce"]

Say = Callable[[str], None]
FRONT = (*OURS, "fairsaoml")  # learners whose lines stand in front, with their spread
RESULT_SCHEMA = 1


def reproduce(
    exhibits: Sequence[Exhibit],
    choice: Choice,
    out: Path,
    *,
    force: bool = False,
    say: Say = lambda words: None,
    **how: Any,
) -> Path:
    """Do the runs that some exhibits need, draw these, and write the page that shows all.

    Args:
        exhibits: what to draw.
        choice: the streams, learners, seeds and settings.
        out: the folder for runs, measured times, figures and tables. What is there is kept.
        force: run and measure again what is there.
        say: is called with a line of words for each step.
        how: `engine`, `workers`, `address` and `on_event` of the runs, as in `run_all`.

    Returns:
        The path of the page.
    """
    run_all(jobs_of(exhibits, choice, out), force=force, **how)
    evaluation = Evaluation(choice, out, force, say)
    for exhibit in exhibits:
        say(f"{exhibit.name}: {exhibit.title}")
        DRAW[exhibit.name](evaluation, exhibit)
    return write_index(out)


class Evaluation:
    """What the drawing of every exhibit needs; a run that several exhibits show is read once."""

    def __init__(self, choice: Choice, out: Path, force: bool, say: Say) -> None:
        self.choice, self.out, self.force, self.say = choice, out, force, say
        self._runs: dict[Path, Run] = {}

    def run(self, variant: Variant, stream: str) -> Run:
        """Return the finished run of a variant on a stream."""
        folder = folder_of(spec_of(variant, stream, self.choice), self.out)
        if folder not in self._runs:
            self._runs[folder] = read_run(folder)
        return self._runs[folder]

    def rows(self, exhibit: Exhibit, stream: str) -> list[Row]:
        """Return the finished runs of an exhibit on a stream, as rows of a table."""
        variants = self.choice.variants(exhibit)
        kinds = ["ours" if variant.learner in OURS else "paper" for variant in variants]
        return [
            Row(variant.label, kind, self.run(variant, stream))
            for variant, kind in zip(variants, kinds, strict=True)
        ]

    def keep(self, exhibit: Exhibit, data: Any, *, picture: str = "", text: str = "") -> None:
        """Write an exhibit's files: the numbers always, picture and tables if there are any."""
        options = self.choice.options() if exhibit.variants else []
        command = shlex.join(["python", "-m", "paper", "reproduce", exhibit.name, *options])
        figures, tables = self.out / "figures", self.out / "tables"
        for folder in (figures, tables):
            folder.mkdir(parents=True, exist_ok=True)
        if picture:
            write_text(figures / f"{exhibit.name}.svg", picture + "\n")
        name = exhibit.table_name
        if text:
            heading = f"# {exhibit.title}\n\n{exhibit.caption}\n\n`{command}`\n\n"
            write_text(tables / f"{name}.md", heading + text)
        # Last: an exhibit is on the page when its numbers are there.
        write_json(
            tables / f"{name}.json",
            {"schema": RESULT_SCHEMA, "command": command, "data": data},
        )


def _cover(evaluation: Evaluation, exhibit: Exhibit) -> None:
    evaluation.keep(
        exhibit,
        {**COVER, "levels": intervals.cover(COVER["horizon"], COVER["base"])},
        picture=geometric_cover(**COVER),
    )


def _by_round(evaluation: Evaluation, exhibit: Exhibit, *, everyone: bool) -> None:
    """Figure 3, and the ablation in the same form."""
    columns, figures = [], {}
    for stream in evaluation.choice.streams:
        rows = evaluation.rows(exhibit, stream)
        weights = [row.run for row in rows if row.label == "fairsaoml"]
        columns.append(
            Column(
                stream,
                [Line(row.label, row.run, not everyone or row.label in FRONT) for row in rows],
                weights[0] if weights else None,
            )
        )
        others = alternatives_on(stream, evaluation.out / "peers") if everyone else []
        figures[stream] = quality([*rows, *others])
    learners = {variant.learner for variant in evaluation.choice.variants(exhibit)}
    evaluation.keep(
        exhibit,
        figures,
        picture=draw_by_round(exhibit.title, columns),
        text=quality_text(figures, seen=any(map(is_tuned, learners))),
    )


def _base(evaluation: Evaluation, exhibit: Exhibit) -> None:
    measures = {"Accuracy": "accuracy", "DP": "dp_ratio", "EO": "eo_ratio"}
    columns, figures = {}, {}
    for stream in evaluation.choice.streams:
        rows = figures[stream] = quality(evaluation.rows(exhibit, stream))
        ends = [[block for block in row["blocks"] if block["end"]] for row in rows]
        # By domain, the block of each base.
        domains = {blocks[0]["domain"]: blocks for blocks in zip(*ends, strict=True)}
        columns[stream] = {
            title: {
                domain: [Dot(**block["figures"][measure]) for block in blocks]
                for domain, blocks in domains.items()
            }
            for title, measure in measures.items()
        }
    evaluation.keep(
        exhibit,
        figures,
        picture=draw_dots(
            exhibit.title, exhibit.caption, columns, [str(base) for base in BASES], "base"
        ),
        text=quality_text(figures, seen=is_tuned("fairsaoml")),
    )


def _runtime(evaluation: Evaluation, exhibit: Exhibit) -> None:
    """Measured here and now, one after another: no other run is going on."""
    plain = replace(evaluation.choice, seeds=1)
    variants = evaluation.choice.variants(exhibit)
    timings: dict[str, list[dict[str, Any]]] = {}
    for stream in evaluation.choice.streams:
        for variant in variants:
            spec = spec_of(variant, stream, plain, tuned=False)
            file = timing_file(spec, evaluation.out)
            if evaluation.force or not file.exists():
                evaluation.say(f"timing {variant.label} on {stream}")
            timings.setdefault(stream, []).append(measured(spec, file, force=evaluation.force))
    colours = {name: stroke.colour for name, stroke in zip(FRONT, STROKES, strict=False)}
    columns = {
        stream: [
            Bar(
                name=entry["learner"],
                value=entry["median"] * 1e3,
                low=entry["quartiles"][0] * 1e3,
                high=entry["quartiles"][1] * 1e3,
                words=_digits(entry["median"] * 1e3),
                colour=colours.get(entry["learner"], EDGE),
            )
            for entry in entries
        ]
        for stream, entries in timings.items()
    }
    evaluation.keep(
        exhibit,
        timings,
        picture=draw_bars(exhibit.title, exhibit.caption, columns, "milliseconds"),
        text=_runtime_text(timings),
    )


def _digits(value: float) -> str:
    """Three significant digits, without an exponent.

    >>> _digits(4.2261), _digits(61.2), _digits(1234.5)
    ('4.23', '61.2', '1234')
    """
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _runtime_text(timings: dict[str, list[dict[str, Any]]]) -> str:
    head = ["", *(f"{stream}, ms a round" for stream in timings)]
    head += [f"{stream}, first round, s" for stream in timings]
    rows = []
    for entries in zip(*timings.values(), strict=True):  # of one learner, by stream
        medians = [_digits(entry["median"] * 1e3) for entry in entries]
        firsts = [_digits(entry["first"]) for entry in entries]
        rows.append([entries[0]["learner"], *medians, *firsts])
    note = (
        "The first round compiles the learner's program, or finds it in the cache of compiled "
        "programs; it is paid once for each padded number of rows."
    )
    return f"{table(head, rows)}\n\n{note}\n"


def _bounds(evaluation: Evaluation, exhibit: Exhibit) -> None:
    from paper.bounds import bounds_table, measure_bounds

    choice, folder = evaluation.choice, evaluation.out / "bounds"
    if evaluation.force:
        for kept in folder.glob("*.json"):
            kept.unlink()
    data = measure_bounds(
        learners=[variant.learner for variant in choice.variants(exhibit)],
        lengths=list(BOUND_LENGTHS),
        seeds=list(range(choice.seeds)),
        folder=folder,
        on_progress=evaluation.say,
    )
    evaluation.keep(exhibit, data, text=bounds_table(data))


DRAW: dict[str, Callable[[Evaluation, Exhibit], None]] = {
    "figure-1": _cover,
    "figure-3": lambda evaluation, exhibit: _by_round(evaluation, exhibit, everyone=True),
    "figure-3-printed": lambda evaluation, exhibit: _by_round(evaluation, exhibit, everyone=False),
    "ablation": lambda evaluation, exhibit: _by_round(evaluation, exhibit, everyone=False),
    "base": _base,
    "runtime": _runtime,
    "bounds": _bounds,
}


def write_index(out: Path) -> Path:
    """Write the page of everything that was drawn so far, by this call or before."""
    sections = []
    for exhibit in EXHIBITS.values():
        numbers = out / "tables" / f"{exhibit.table_name}.json"
        if not numbers.exists():
            continue
        text, _, details = _text(out / "tables" / f"{exhibit.table_name}.md").partition(DETAILS)
        sections.append(
            Section(
                name=exhibit.name,
                title=exhibit.title,
                caption=exhibit.caption,
                command=read_json(numbers)["command"],
                figure=_text(out / "figures" / f"{exhibit.name}.svg"),
                text=text.partition("`\n\n")[2],  # its head says what the page says already
                details=details,
            )
        )
    page = out / "index.html"
    write_text(
        page,
        index_page(
            "The paper's evaluation, repeated",
            "Every round is scored with what was learned before it, and only then learned from. "
            "DP and EO compare how groups are treated: 1 is equal, 0.8 the 80 % rule.",
            sections,
        ),
    )
    return page


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
