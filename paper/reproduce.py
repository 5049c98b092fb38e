"""From the plan of the evaluation to its figures and tables: play what is missing, then draw."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairsaoml.compare.engine import OnEvent, run_all
from fairsaoml.core import intervals
from fairsaoml.report.reading import Run, read_run
from fairsaoml.runs.files import read_json, write_json, write_text
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
from paper.tables import DETAILS, Row, peers_of, quality, quality_text, table

__all__ = ["reproduce"]

Say = Callable[[str], None]
FRONT = (*OURS, "fairsaoml")  # learners whose lines stand in front, with their spread
RESULT_SCHEMA = 1


def reproduce(
    exhibits: Sequence[Exhibit],
    choice: Choice,
    out: Path,
    *,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    force: bool = False,
    on_event: OnEvent = lambda event: None,
    say: Say = lambda words: None,
) -> Path:
    """Play the runs that some exhibits need, draw them, and write the page that shows all.

    Runs, measured times and drawn files lie under `out`; what is there is not done again, unless
    forced. Returns the page's path.
    """
    run_all(
        jobs_of(exhibits, choice, out),
        engine=engine,
        workers=workers,
        address=address,
        force=force,
        on_event=on_event,
    )
    drawer = Drawer(choice, out, force, say)
    for exhibit in exhibits:
        say(f"{exhibit.name}: {exhibit.title}")
        DRAWN[exhibit.name](drawer, exhibit)
    return write_index(out)


class Drawer:
    """What the drawing of every exhibit needs; a run that several show is read once."""

    def __init__(self, choice: Choice, out: Path, force: bool, say: Say) -> None:
        self.choice, self.out, self.force, self.say = choice, out, force, say
        self._runs: dict[Path, Run] = {}

    def run(self, variant: Variant, stream: str) -> Run:
        """The finished run behind a variant on a stream."""
        folder = folder_of(spec_of(variant, stream, self.choice), self.out)
        if folder not in self._runs:
            self._runs[folder] = read_run(folder)
        return self._runs[folder]

    def rows(self, exhibit: Exhibit, stream: str) -> list[Row]:
        return [
            Row(
                variant.label,
                "ours" if variant.learner in OURS else "paper",
                self.run(variant, stream),
            )
            for variant in self.choice.variants(exhibit)
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


def _cover(drawer: Drawer, exhibit: Exhibit) -> None:
    drawer.keep(
        exhibit,
        {**COVER, "levels": intervals.cover(COVER["horizon"], COVER["base"])},
        picture=geometric_cover(**COVER),
    )


def _by_round(drawer: Drawer, exhibit: Exhibit, *, everyone: bool) -> None:
    """Figure 3, and the ablation in the same form."""
    columns, found = [], {}
    for stream in drawer.choice.streams:
        rows = drawer.rows(exhibit, stream)
        weights = [row.run for row in rows if row.label == "fairsaoml"]
        columns.append(
            Column(
                stream,
                [Line(row.label, row.run, not everyone or row.label in FRONT) for row in rows],
                weights[0] if weights else None,
            )
        )
        peers = peers_of(stream, drawer.out / "peers") if everyone else []
        found[stream] = quality([*rows, *peers])
    learners = {variant.learner for variant in drawer.choice.variants(exhibit)}
    drawer.keep(
        exhibit,
        found,
        picture=draw_by_round(exhibit.title, columns),
        text=quality_text(found, seen=any(map(is_tuned, learners))),
    )


def _base(drawer: Drawer, exhibit: Exhibit) -> None:
    measures = {"Accuracy": "accuracy", "DP": "dp_ratio", "EO": "eo_ratio"}
    columns, found = {}, {}
    for stream in drawer.choice.streams:
        rows = quality(drawer.rows(exhibit, stream))
        found[stream] = rows
        ends = [[block for block in row["blocks"] if block["end"]] for row in rows]
        names = [block["domain"] for block in ends[0]]
        columns[stream] = {
            title: {
                name: [_dot(of_base[at]["figures"][key]) for of_base in ends]
                for at, name in enumerate(names)
            }
            for title, key in measures.items()
        }
    drawer.keep(
        exhibit,
        found,
        picture=draw_dots(
            exhibit.title, exhibit.caption, columns, [str(base) for base in BASES], "base"
        ),
        text=quality_text(found, seen=is_tuned("fairsaoml")),
    )


def _dot(figure: dict[str, float | None]) -> Dot:
    return Dot(figure["pooled"], figure["spread"])


def _runtime(drawer: Drawer, exhibit: Exhibit) -> None:
    """Measured here and now, one after another: nobody else of ours is playing."""
    plain = Choice(seeds=1, settings=drawer.choice.settings, learners=drawer.choice.learners)
    variants = drawer.choice.variants(exhibit)
    found: dict[str, list[dict[str, Any]]] = {}
    for stream in drawer.choice.streams:
        for variant in variants:
            spec = spec_of(variant, stream, plain, tuned=False)
            file = timing_file(spec, drawer.out)
            if drawer.force or not file.exists():
                drawer.say(f"timing {variant.label} on {stream}")
            found.setdefault(stream, []).append(measured(spec, file, force=drawer.force))
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
        for stream, entries in found.items()
    }
    drawer.keep(
        exhibit,
        found,
        picture=draw_bars(exhibit.title, exhibit.caption, columns, "milliseconds"),
        text=_runtime_text(found),
    )


def _digits(value: float) -> str:
    """Three significant digits, as people write them.

    >>> _digits(4.2261), _digits(61.2), _digits(1234.5)
    ('4.23', '61.2', '1234')
    """
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _runtime_text(found: dict[str, list[dict[str, Any]]]) -> str:
    head = ["", *(f"{stream}, ms a round" for stream in found)]
    head += [f"{stream}, first round, s" for stream in found]
    rows = []
    for at, entry in enumerate(next(iter(found.values()))):
        own = [entries[at] for entries in found.values()]
        cells = [_digits(one["median"] * 1e3) for one in own]
        rows.append([entry["learner"], *cells, *(_digits(one["first"]) for one in own)])
    note = (
        "The first round compiles the learner's program, or finds it in the cache of compiled "
        "programs; it is paid once for each padded number of rows."
    )
    return f"{table(head, rows)}\n\n{note}\n"


def _bounds(drawer: Drawer, exhibit: Exhibit) -> None:
    from paper.bounds import bounds_table, measure_bounds

    choice, folder = drawer.choice, drawer.out / "bounds"
    if drawer.force:
        for kept in folder.glob("*.json"):
            kept.unlink()
    data = measure_bounds(
        learners=[variant.learner for variant in choice.variants(exhibit)],
        lengths=list(BOUND_LENGTHS),
        seeds=list(range(choice.seeds)),
        folder=folder,
        on_progress=drawer.say,
    )
    drawer.keep(exhibit, data, text=bounds_table(data))


DRAWN: dict[str, Callable[[Drawer, Exhibit], None]] = {
    "figure-1": _cover,
    "figure-3": lambda drawer, exhibit: _by_round(drawer, exhibit, everyone=True),
    "ablation": lambda drawer, exhibit: _by_round(drawer, exhibit, everyone=False),
    "base": _base,
    "runtime": _runtime,
    "bounds": _bounds,
}


def write_index(out: Path) -> Path:
    """The page of everything that was drawn so far, today or before."""
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
