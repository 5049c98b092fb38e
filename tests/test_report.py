"""The report says what the run's files say: nothing from outside, nothing hidden, nothing run."""

import json
import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fairsaoml.cli.tables import print_summary
from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.summary import summarise
from fairsaoml.report import write_picture, write_report
from fairsaoml.report.changes import changes
from fairsaoml.report.chart import TICK_ROOM, binned, series
from fairsaoml.report.figures import insides
from fairsaoml.report.reading import read_run

IN_ORDER = (
    "Verdict",
    "Who is worse off",
    "What fairness cost",
    "Over time",
    "Counts by group",
    "What to do next",
    "Inside the learners",
    "Settings and versions",
)
BEST = {"accuracy": 0.83, "fair_accuracy": 0.8}


def fake_counts(rng: random.Random, gap: float, skill: float) -> dict:
    """Two groups of a few hundred rows; `gap` tilts the decisions towards the majority."""
    counts = {}
    for group, sign, size in (("majority", 1, 560), ("minority", -1, 440)):
        y1 = round(size * (0.53 + sign * 0.04))
        true_positive = sum(rng.random() < skill + sign * gap / 2 for _ in range(y1))
        false_positive = sum(rng.random() < 1 - skill + sign * gap / 2 for _ in range(size - y1))
        counts[group] = {
            "rows": size,
            "predicted_positive": true_positive + false_positive,
            "y1_rows": y1,
            "true_positive": true_positive,
            "y0_rows": size - y1,
            "false_positive": false_positive,
        }
    return counts


def figures_of(counts: dict) -> dict:
    """The measures of two groups' counts, by the book."""

    def ratio(part: str, whole: str) -> float | None:
        rates = [c[part] / c[whole] if c[whole] else None for c in counts.values()]
        return None if None in rates or max(rates) == 0 else min(rates) / max(rates)

    total = {key: sum(c[key] for c in counts.values()) for key in next(iter(counts.values()))}
    right = total["true_positive"] + total["y0_rows"] - total["false_positive"]
    tpr = total["true_positive"] / total["y1_rows"] if total["y1_rows"] else None
    fpr = total["false_positive"] / total["y0_rows"] if total["y0_rows"] else None
    parts = {
        "eo_ratio_tpr": ratio("true_positive", "y1_rows"),
        "eo_ratio_fpr": ratio("false_positive", "y0_rows"),
    }
    rates = [c["predicted_positive"] / c["rows"] for c in counts.values()]
    return {
        "accuracy": right / total["rows"],
        "balanced_accuracy": None if tpr is None or fpr is None else (tpr + 1 - fpr) / 2,
        "positive_rate": total["predicted_positive"] / total["rows"],
        "dp_ratio": ratio("predicted_positive", "rows"),
        "dp_difference": max(rates) - min(rates),
        "eo_ratio": None if None in parts.values() else min(parts.values()),
        **parts,
    }


def fake_run(
    folder: Path,
    *,
    name: str = "fairsaoml-live",
    gap: float = 0.04,
    skill: float = 0.8,
    seeds: int = 3,
    domains: tuple = (("market-1", 30), ("market-2", 30), ("market-3", 30)),
    constraints: tuple = ("eo1[group=minority]", "eo0[group=minority]"),
    summary: bool = True,
    asked: dict | None = None,
) -> Path:
    """A run's folder as DESIGN.md describes it, with plausible numbers in it."""
    folder.mkdir(parents=True)
    asked = {"constraints": "eo" if constraints else "none"} if asked is None else asked
    rng = random.Random(f"{name} {gap} {skill}")
    lines = []
    start = 1
    length = sum(count for _, count in domains)
    dual = [0.2 for _ in constraints]
    for domain, count in domains:
        for round in range(start, start + count):
            age = round - start
            shock = 0.75**age
            levels = 1 + sum(round > 2**k for k in range(1, 7) if 2 ** (k + 1) <= length)
            dual = [max(0.0, d + 0.3 * shock - 0.05 * d + rng.gauss(0, 0.02)) for d in dual]
            for seed in range(seeds):
                counts = fake_counts(rng, gap + 0.5 * shock, skill - 0.25 * shock)
                mass = [
                    (k + 1) ** (2.5 * (1 - shock) - 1) * rng.uniform(0.8, 1) for k in range(levels)
                ]
                lines.append(
                    {
                        "round": round,
                        "seed": seed,
                        "domain": domain,
                        "rows": 1000,
                        **figures_of(counts),
                        "loss": 0.45 + shock / 3,
                        "violation": [0.3 * shock - 0.02 + rng.gauss(0, 0.02) for _ in constraints],
                        "dual": dual,
                        "weights": [m / sum(mass) for m in mass],
                        "awake": [k for k in range(levels) if (round - 1) % 2**k == 0],
                        "counts": {"group": counts},
                        "attributes": {"group": {"dp_ratio": figures_of(counts)["dp_ratio"]}},
                        "undefined": [],
                        "insufficient": [],
                        "warnings": [],
                        "adapted": figures_of(counts),
                        "seconds": 0.01,
                    }
                )
        start += count
    spec = {
        "schema": 1,
        "name": name,
        "learner": {"name": "fairsaoml-live", "config": {"base": 2, "tolerance": 0.02, **asked}},
        "stream": {
            "name": "synthetic",
            "settings": {"generator": 0},
            "features": ["income", "debt"],
            "attributes": [{"name": "group", "levels": ["majority", "minority"]}],
            "length": length,
            "notes": ["ten features"],
        },
        "constraints": list(constraints),
        "seeds": list(range(seeds)),
        "versions": {"fairsaoml": "0.1.0", "jax": "0.5.0", "python": "3.11"},
        "command": f"fairsaoml run synthetic --seeds {seeds} --out runs/{name}",
    }
    write_run(folder, spec, lines, summary=summary)
    return folder


def write_run(
    folder: Path, spec: dict, lines: list, *, summary: bool = True, best: bool = True
) -> None:
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if summary:
        names = {line["domain"] for line in lines}
        found = summarise(
            lines,
            learner=spec["learner"]["name"],
            stream=spec["stream"]["name"],
            seeds=spec["seeds"],
            best=dict.fromkeys(names, BEST) if best else None,
        )
        (folder / "summary.json").write_text(json.dumps(found))


SHAPES = {"svg", "path", "line", "circle", "text", "g", "rect", "title", "desc", "style"}
VOID = {"meta", "input", "br"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A fair run, a less accurate one, and one without the constraint."""
    base = tmp_path_factory.mktemp("runs")
    return [
        fake_run(base / "live", name="fairsaoml-live", gap=0.02, skill=0.79),
        fake_run(base / "paper", name="fairsaoml", gap=0.03, skill=0.74, constraints=("dp",)),
        fake_run(base / "none", name="no constraint", gap=0.28, skill=0.82, constraints=()),
    ]


class Page(HTMLParser):
    """The page as a reader meets it; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page_of(folders: list[Path], tmp_path: Path) -> tuple[str, Page]:
    text = write_report(folders, tmp_path / "report.html").read_text()
    return text, Page(text)


def drawings(text: str) -> list[ElementTree.Element]:
    """Every chart of the page, as XML: parsing it is half of the test."""
    found = re.findall(r"<svg [^>]*class=\"chart\".*?</svg>", text, flags=re.S)
    return [ElementTree.fromstring(svg) for svg in found]


def progress_of(text: str) -> ElementTree.Element:
    """The chart over time."""
    return next(svg for svg in drawings(text) if "over time" in (svg[0].text or ""))


def paths(svg: ElementTree.Element, class_: str) -> list[str]:
    nodes = svg.iter("{http://www.w3.org/2000/svg}path")
    return [node.get("d", "") for node in nodes if node.get("class") == class_]


def change(folder: Path, edit: Callable[[list], None], **options: bool) -> Path:
    """The same run with other lines in its journal."""
    spec = json.loads((folder / "spec.json").read_text())
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    edit(lines)
    (folder / "summary.json").unlink(missing_ok=True)
    write_run(folder, spec, lines, **options)
    return folder


def test_the_page_needs_nothing_from_outside(runs: list[Path], tmp_path: Path) -> None:
    text, page = page_of(runs, tmp_path)
    for _, attributes in page.tags:
        assert not {"src", "href", "srcset", "data", "action"} & attributes.keys()
        assert "xlink:href" not in attributes
    assert set(re.findall(r"\w+://[^\"'\s<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text


def test_every_chart_is_xml_with_a_title_and_a_description(
    runs: list[Path], tmp_path: Path
) -> None:
    text, page = page_of(runs, tmp_path)
    charts = drawings(text)
    assert len(charts) == text.count('class="chart"')
    for svg in charts:
        kinds = [node.tag.split("}")[1] for node in svg.iter()]
        assert kinds[1:3] == ["title", "desc"]
        assert set(kinds) <= SHAPES
        assert all(node.text for node in list(svg)[:2])
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_answers_the_question_first(runs: list[Path], tmp_path: Path) -> None:
    _, page = page_of(runs, tmp_path)
    assert page.text.startswith("1 of 3 runs is fair; 1 is not; for 1 there are not enough rows")
    order = [page.text.index(words) for words in IN_ORDER]
    assert order == sorted(order)
    text, alone = page_of(runs[2:], tmp_path)
    assert alone.text.startswith("Not fair by group: synthetic Not fair by group")
    assert "By group: minority is worse off. Of minority" in alone.text
    assert "This run was not asked to be fair" in alone.text
    levels = [int(tag[1]) for tag, _ in alone.tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in zip([0, *levels], levels, strict=False))  # none skipped
    assert text.count("<table") == text.count("<caption")


def test_a_run_is_judged_by_what_it_was_asked_for(tmp_path: Path) -> None:
    """Demographic parity is missed, equalized odds kept: the headline speaks of the latter."""

    def unequal_labels(lines: list) -> None:
        for line in lines:
            for group, (y1, y0) in {"majority": (400, 160), "minority": (160, 280)}.items():
                hit, alarm = round(0.8 * y1), round(0.25 * y0)
                line["counts"]["group"][group] = {
                    "rows": y1 + y0,
                    "predicted_positive": hit + alarm,
                    "y1_rows": y1,
                    "true_positive": hit,
                    "y0_rows": y0,
                    "false_positive": alarm,
                }

    folder = change(
        fake_run(tmp_path / "run", asked={"constraints": "eo", "ratio": 0.9}), unequal_labels
    )
    _, page = page_of([folder], tmp_path)
    assert page.text.startswith("Fair by group")
    assert "Equalized odds by group asked for: 0.90 ✓ Fair 1.00" in page.text
    assert "Demographic parity by group for information 0.70" in page.text


def test_a_run_of_one_round_says_that_it_cannot_be_judged(tmp_path: Path) -> None:
    _, page = page_of([fake_run(tmp_path / "run", domains=(("", 1),))], tmp_path)
    assert page.text.startswith("Not enough rows to tell by group")
    assert (
        "the only round was decided before anything was learned, so it is not judged" in page.text
    )
    assert "cut the table into more tasks" in page.text


def test_dates_stand_on_the_axis_and_in_the_words(tmp_path: Path) -> None:
    def date(lines: list) -> None:
        for line in lines:
            month = f"2021-{(line['round'] + 7) // 8:02d}"
            line["period"] = [f"{month}-01 08:00:00", f"{month}-28"]

    text, page = page_of([change(fake_run(tmp_path / "run", seeds=1), date)], tmp_path)
    assert "90 rounds, 90,000 rows, 3 domains, 2021-01-01 to 2021-12-28" in page.text
    words = [node.text for node in progress_of(text).iter() if node.get("class") == "tick"]
    assert "2021-03-01" in words
    assert "time of the round's first row" in [node.text for node in progress_of(text).iter()]
    assert json.loads(page.scripts[0])["labels"][8] == "Round 9, 2021-02-01 to 2021-02-28"


@pytest.mark.parametrize("rounds", [2, 3, 5, 20, 34, 60, 146, 149, 400])
def test_dates_on_the_axis_do_not_run_together(rounds: int, tmp_path: Path) -> None:
    def date(lines: list) -> None:
        for line in lines:
            line["period"] = [str(datetime(2011, 1, 1) + timedelta(6 * line["round"]))] * 2

    folder = fake_run(tmp_path / "run", seeds=1, domains=(("", rounds),))
    text, _ = page_of([change(folder, date)], tmp_path)
    charts = [svg for svg in drawings(text) if "over time" in (svg[0].text or "")]
    for chart in charts:
        dates = [node for node in chart.iter() if re.match(r"\d{4}-", node.text or "")]
        places = sorted(float(node.get("x", "")) for node in dates)
        assert places
        assert all(b - a >= TICK_ROOM for a, b in pairwise(places))
    assert len(charts) > 1  # of several widths


def test_the_words_follow_what_is_good_for_a_person_and_what_was_left_out(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", seeds=1, domains=(("", 8),))

    def leave_out(lines: list) -> None:
        lines[0]["left_out"] = 17
        lines[1]["warnings"] = [WARNINGS["not_finite"]]

    change(folder, leave_out)
    spec = json.loads((folder / "spec.json").read_text())
    good, bad = "Selected", "Decided unfavourably"
    for favourable, decided, other in (("yes", good, bad), ("no", bad, good)):
        spec["stream"]["settings"]["favourable"] = favourable
        (folder / "spec.json").write_text(json.dumps(spec))
        _, page = page_of([folder], tmp_path)
        assert decided in page.text
        assert other not in page.text
        assert "last 8 rounds" in page.text.lower()
        assert "last ten rounds" not in page.text.lower()
        assert "<" not in page.text  # nothing of the markup is shown as text
    said = "Nothing could be learned in 1 of 8 rounds. 1 update was refused, as not finite. 17 rows"
    assert said in page.text


def test_the_page_says_what_fairness_cost(tmp_path: Path) -> None:
    def without_fairness(lines: list) -> None:
        for line in lines:
            counts = fake_counts(random.Random(line["round"]), 0.3, 0.82)
            line["plain"] = {**figures_of(counts), "changed": 50, "counts": {"group": counts}}

    folder = change(fake_run(tmp_path / "run", asked={"constraints": "eo"}), without_fairness)
    text, page = page_of([folder], tmp_path)
    cost = page.text[page.text.index("What fairness cost") : page.text.index("Over time")]
    assert re.search(
        r"In rounds 81 to 90, which are judged, accuracy is 0\.8\d+ instead of 0\.8\d+, for "
        r"equalized odds by group of",
        cost,
    )
    right, cases = 0, 0  # of the same rounds as the ratio, not of the whole run
    for line in map(json.loads, (folder / "rounds.jsonl").read_text().splitlines()):
        if line["round"] > 80:
            right, cases = right + line["accuracy"] * line["rows"], cases + line["rows"]
    entry = read_run(folder).verdict["attributes"]["group"]["notions"]["eo"]
    assert "Rounds 81 to 90. Without fairness" in cost
    assert f"accuracy is {right / cases:.3f} instead" in cost
    assert f"equalized odds by group of {entry['ratio']:.2f} instead" in cost
    assert "Fairness changed 5.0 % of the decisions." in cost
    assert "Without fairness" in cost
    assert len(paths(progress_of(text), "line part-4")) == 1


def test_a_change_of_the_world_is_named_with_its_time(tmp_path: Path) -> None:
    _, page = page_of([fake_run(tmp_path / "run", domains=(("", 30),))], tmp_path)
    assert "likely changed" not in page.text

    def turn(lines: list) -> None:
        for line in lines[len(lines) // 2 :]:
            for counts in line["counts"]["group"].values():
                counts["true_positive"] //= 2
                counts["predicted_positive"] = counts["true_positive"] + counts["false_positive"]

    folder = change(fake_run(tmp_path / "turned", domains=(("", 40),)), turn)
    _, page = page_of([folder], tmp_path)
    said = page.text[page.text.index("The world has likely changed") :]
    assert said.startswith("The world has likely changed: at about round 21 accuracy fell from")
    assert said.split(". The learner")[0].count("round") == 1


def test_a_change_is_one_of_what_the_run_aims_at_and_changes_are_in_order_of_time(
    tmp_path: Path,
) -> None:
    def few(lines: list) -> None:
        """6 % positives; the threshold moves at round 11, the world at 31, and more at 21."""
        for line in lines:
            late, more = line["round"] > 30, 30 if line["round"] > 20 else 0
            found, false = (48, 376) if line["round"] > 10 else (36, 188)  # balanced .7, .7
            y1, y0 = 60 + more, 940 - more
            counts = {
                "rows": 1000,
                "y1_rows": y1,
                "y0_rows": y0,
                "true_positive": round(found / 60 * y1 * (0.2 if late else 1)),
                "false_positive": round(false / 940 * y0),
            }
            counts["predicted_positive"] = counts["true_positive"] + counts["false_positive"]
            line["counts"] = {"group": {"majority": counts}}
            line["period"] = [f"2021-{line['round']:03d}", f"2021-{line['round']:03d}"]

    folder = change(fake_run(tmp_path / "run", seeds=1, domains=(("", 40),)), few)
    assert [words.split(" from")[0] for words in changes(read_run(folder))] == [
        "at about round 11 (2021-011) accuracy fell",
        "at about round 21 (2021-021) the share of positive labels rose",
        "at about round 31 (2021-031) accuracy fell",
    ]
    spec = json.loads((folder / "spec.json").read_text())
    spec["learner"]["config"]["decision"] = "balanced"
    (folder / "spec.json").write_text(json.dumps(spec))
    assert changes(read_run(folder)) == [
        "at about round 21 (2021-021) the share of positive labels rose from 0.06 to 0.09",
        "at about round 31 (2021-031) balanced accuracy fell from 0.70 to 0.38",
    ]


def test_sums_that_differ_from_the_ratio_are_explained(tmp_path: Path) -> None:
    """In each half both groups are treated alike; one came early, where fewer were selected."""

    def shift(lines: list) -> None:
        for line in lines:
            late = line["round"] > 11
            share, rows = (0.6 if late else 0.2), {"a": 10, "b": 50}
            if late:
                rows = {"a": 50, "b": 10}
            line["counts"] = {"group": {}}
            for group, half in rows.items():
                six = {"rows": 2 * half, "predicted_positive": round(2 * half * share)}
                six |= {"y1_rows": half, "true_positive": round(half * share)}
                six |= {"y0_rows": half, "false_positive": round(half * share)}
                line["counts"]["group"][group] = six

    asked = {"constraints": "eo", "ratio": 0.9}
    folder = fake_run(tmp_path / "run", asked=asked, seeds=1, domains=(("", 21),))
    _, page = page_of([change(folder, shift)], tmp_path)
    assert "These are sums. The ratio of 1.00 is of ten rounds at a time" in page.text


def test_how_many_more_rows_decide_is_not_foretold(tmp_path: Path) -> None:
    """The ratio moves as rows come: what is said is the range, and what it must be."""

    def thin(lines: list) -> None:
        six = {"rows": 60, "predicted_positive": 30, "y1_rows": 30, "y0_rows": 30}
        six |= {"true_positive": 20, "false_positive": 10}
        for line in lines:
            line["counts"] = {"group": {"majority": six, "minority": six}}

    folder = fake_run(
        tmp_path / "run", asked={"constraints": "eo", "ratio": 0.9}, seeds=1, domains=(("", 6),)
    )
    change(folder, thin)
    entry = read_run(folder).verdict["attributes"]["group"]["notions"]["eo"]
    _, page = page_of([folder], tmp_path)
    assert (
        f"equalized odds by group may be anything from {entry['low']:.2f} to {entry['high']:.2f}. "
        "To decide, this range must end below 0.90, or begin at 0.80 or above; half the range "
        "takes at least four times as many rows."
    ) in page.text


def test_thin_rounds_are_pooled_until_they_say_something(tmp_path: Path) -> None:
    def thin(lines: list) -> None:
        for line in lines:
            for group, counts in line["counts"]["group"].items():
                line["counts"]["group"][group] = {key: n // 50 for key, n in counts.items()}

    folder = change(fake_run(tmp_path / "run", seeds=1, domains=(("", 60),)), thin)
    text, page = page_of([folder], tmp_path)
    assert "Each point is 10 rounds together" in page.text
    assert paths(progress_of(text), "line hue-0")[0].count("L") == 5


def test_nine_runs_are_nine_distinguishable_curves(tmp_path: Path) -> None:
    folders = [
        fake_run(tmp_path / str(i), name=f"learner-{i}", seeds=1, domains=(("", 6),))
        for i in range(9)
    ]
    text, _ = page_of(folders, tmp_path)
    classes = {node.get("class") for node in progress_of(text).iter()}
    styles = [f"hue-{i}" for i in range(9)]
    assert {f"line {style}" for style in styles} <= classes
    sheet = (files("fairsaoml.report") / "assets" / "chart.css").read_text()
    drawn = [re.search(rf"\.{style} {{ (.*?) }}", sheet) for style in styles]
    assert len({match[1] for match in drawn if match}) == 9


def test_two_runs_are_called_by_what_differs(tmp_path: Path) -> None:
    folders = [
        fake_run(
            tmp_path / str(i),
            name="fairsaoml-live" + said,
            asked=asked,
            seeds=1,
            domains=(("", 6),),
        )
        for i, (said, asked) in enumerate([(" ratio=0.8", {"ratio": 0.8}), ("", {"ratio": 0.9})])
    ]
    text, _ = page_of(folders, tmp_path)
    names = {node.text for node in progress_of(text).iter() if "name" in node.get("class", "")}
    assert names == {"ratio=0.8", "ratio=0.9"}


def test_several_runs_share_their_charts_and_tables(runs: list[Path], tmp_path: Path) -> None:
    text, page = page_of(runs, tmp_path)
    first = progress_of(text)
    for hue in ("hue-0", "hue-1", "hue-2"):
        assert len(paths(first, f"line {hue}")) == 3  # DP, EO, accuracy
        assert len(paths(first, f"band {hue}")) == 3
    ends = [node.text for node in first.iter() if node.get("class", "").startswith("name ")]
    assert sorted(ends) == sorted(["fairsaoml-live", "fairsaoml", "no constraint"] * 3)
    assert sum(attributes.get("type") == "checkbox" for _, attributes in page.tags) == 3
    assert "No constraint, so no dual and no violation." in page.text


def test_lines_are_means_over_seeds_and_bands_reach_the_outermost_seeds(
    runs: list[Path], tmp_path: Path
) -> None:
    run = read_run(runs[0])
    found = series(run, lambda line: line["dp_ratio"], binned(run.rounds))
    for round, mean, low, high in zip(run.rounds, *found, strict=True):
        values = [line["dp_ratio"] for line in run.lines if line["round"] == round]
        assert mean == pytest.approx(sum(values) / len(values))
        assert (low, high) == (min(values), max(values))
    _, page = page_of(runs[:1], tmp_path)
    shown = json.loads(page.scripts[0])
    assert shown["rounds"] == run.rounds
    assert shown["panels"][1]["title"] == "Demographic parity by group"
    assert shown["panels"][1]["curves"][0]["values"] == pytest.approx(found.mean, abs=1e-3)


def test_an_undefined_ratio_is_a_gap_and_never_a_value(tmp_path: Path) -> None:
    def undefine(lines: list) -> None:
        for line in lines:
            # One seed alone is skipped, not the round.
            if line["round"] in (5, 6, 20, 22) or (line["round"], line["seed"]) == (12, 0):
                for counts in line["counts"]["group"].values():
                    counts.update(predicted_positive=0, true_positive=0, false_positive=0)
                line.update(dp_ratio=None, undefined=["dp_ratio of group: 0/0"])

    folder = change(fake_run(tmp_path / "run"), undefine)
    text, page = page_of([folder], tmp_path)
    chart = progress_of(text)
    eo, dp, accuracy = paths(chart, "line hue-0")
    assert dp.count("M") == eo.count("M") == 3  # 1-4, 7-19 and 23-90; round 21 stands alone
    assert accuracy.count("M") == 1
    assert [node.get("class") for node in chart.iter() if node.tag.endswith("circle")] == [
        "dot hue-0"
    ] * 2
    values = json.loads(page.scripts[0])["panels"][0]["curves"][0]["values"]
    assert [i + 1 for i, value in enumerate(values) if value is None] == [5, 6, 20, 22]
    assert "dp_ratio of group: 0/0 13 of 270" in page.text


def test_a_run_that_cannot_be_judged_is_called_so(tmp_path: Path) -> None:
    def refuse_everyone(lines: list) -> None:
        for line in lines:
            for counts in line["counts"]["group"].values():
                counts.update(predicted_positive=0, true_positive=0, false_positive=0)
            line.update(figures_of(line["counts"]["group"]))

    folder = change(fake_run(tmp_path / "run", name="no"), refuse_everyone)
    text, page = page_of([folder], tmp_path)
    assert page.text.startswith("Not enough rows to tell by group")
    assert "It says no to nearly everyone (0.0 % positive, of the labels" in page.text
    assert "? Not enough rows to tell undefined" in page.text
    assert len(paths(progress_of(text), "line hue-0")) == 1  # accuracy alone has a line


@pytest.mark.parametrize("decision", ["accuracy", "balanced"])
def test_decisions_that_are_all_alike_at_the_end_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], decision: str
) -> None:
    """Over the whole run half of them are positive, and in the rounds that are judged all are."""

    def accept_everyone(lines: list) -> None:
        for line in lines:
            if line["round"] > 80:
                for counts in line["counts"]["group"].values():
                    counts.update(
                        predicted_positive=counts["rows"],
                        true_positive=counts["y1_rows"],
                        false_positive=counts["y0_rows"],
                    )
                line.update(figures_of(line["counts"]["group"]))

    asked = {"constraints": "eo", "decision": decision}
    folder = change(fake_run(tmp_path / "run", asked=asked), accept_everyone)
    _, page = page_of([folder], tmp_path)
    said = page.text[page.text.index("What to do next") :]
    assert (
        "In rounds 81 to 90 it says yes to nearly everyone (100.0 % positive, of the labels" in said
    )
    assert ("--decision balanced puts" in said) == (decision == "accuracy")
    print_summary(json.loads((folder / "summary.json").read_text()), decision)
    told = " ".join(capsys.readouterr().out.split())
    assert "100.0% of the decisions in rounds 81 to 90 are positive" in told
    assert ("--decision balanced puts" in told) == (decision == "accuracy")


def test_what_can_be_reached_is_drawn_in_every_domain_that_knows_it(
    runs: list[Path], tmp_path: Path
) -> None:
    def lines(folder: Path) -> list[str]:
        text, _ = page_of([folder], tmp_path)
        nodes = progress_of(text).iter("{http://www.w3.org/2000/svg}line")
        return [node.get("class") for node in nodes if node.get("class", "").startswith("best")]

    assert sorted(lines(runs[0])) == ["best"] * 3 + ["best fair"] * 3
    unknown = change(fake_run(tmp_path / "unknown"), lambda lines: None, best=False)
    assert lines(unknown) == []


def test_group_counts_are_those_of_the_last_ten_rounds(runs: list[Path], tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (runs[0] / "rounds.jsonl").read_text().splitlines()]
    counts = [line["counts"]["group"]["minority"] for line in lines if 51 <= line["round"] <= 60]
    part, whole = (sum(c[key] for c in counts) for key in ("true_positive", "y1_rows"))
    _, page = page_of(runs[:1], tmp_path)
    table = page.text[page.text.index("Counts by group") :]
    block = table[table.index("market-2, last 10 rounds") : table.index("market-3, last 10 rounds")]
    assert f"{part:,} of {whole:,} {part / whole:.3f}" in block


def test_the_page_says_how_to_repeat_the_runs(runs: list[Path], tmp_path: Path) -> None:
    _, page = page_of(runs, tmp_path)
    end = page.text[page.text.index("Settings and versions") :]
    for name in ("fairsaoml-live", "fairsaoml", "no constraint"):
        assert f"fairsaoml run synthetic --seeds 3 --out runs/{name}" in end
    assert "tolerance 0.02 0.02 0.02" in end
    assert "version of jax 0.5.0 0.5.0 0.5.0" in end
    assert "protected: group majority, minority" in end


def test_text_from_files_stays_text(tmp_path: Path) -> None:
    evil = "</script><script>alert('x')</script><b a=\"1\">&\x01"
    folder = fake_run(
        tmp_path / "run", name=evil, domains=((evil, 12),), constraints=(evil, "plain")
    )

    def rename(lines: list) -> None:
        for line in lines:
            groups = line["counts"].pop("group")
            line["counts"][evil] = {evil: groups["majority"], "other": groups["minority"]}
            line.update(undefined=[evil], insufficient=[evil], warnings=[evil])

    change(folder, rename)
    text, page = page_of([folder, folder], tmp_path)
    assert "<script>alert" not in text
    assert "<b a" not in text
    assert "alert('x')" in page.text
    assert len(drawings(text)) > 0
    assert sum(tag == "script" for tag, _ in page.tags) == len(page.scripts)
    picture = write_picture([folder, folder], tmp_path / "picture.svg").read_text()
    assert "alert('x')" in "".join(ElementTree.fromstring(picture).itertext())


def test_one_round_is_enough(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", seeds=1, domains=(("only", 1),))
    text, page = page_of([folder], tmp_path)
    assert "1 round, 1,000 rows." in page.text
    dots = [node for node in progress_of(text).iter() if node.get("class") == "dot hue-0"]
    assert len(dots) == 3


def test_an_unfinished_run_is_reported_as_far_as_it_got(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", summary=False)
    journal = (folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_text("".join(journal[: 3 * 40]) + journal[120][:50])
    finished = fake_run(tmp_path / "other", name="other")
    text, page = page_of([folder, finished], tmp_path)
    assert "fairsaoml-live has not finished: 40 of 90 rounds are in." in page.text
    assert len(paths(progress_of(text), "line hue-0")) == 3


@pytest.mark.parametrize("torn", ["{", "{}", "[]", ""])
def test_a_torn_summary_is_made_again_from_the_rounds(torn: str, tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", seeds=1, domains=(("only", 2),))
    (folder / "summary.json").write_text(torn)
    out = write_report([folder], tmp_path / "report.html")
    assert "2 of 2 rounds" in out.read_text() or "has not finished" in out.read_text()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "spec.json").unlink(), "spec.json"),
        (lambda folder: (folder / "rounds.jsonl").unlink(), "rounds.jsonl"),
        (lambda folder: (folder / "rounds.jsonl").write_text(""), "at least one round"),
        (lambda folder: (folder / "rounds.jsonl").write_text("[]\n{}\n"), "line 1"),
        (lambda folder: (folder / "rounds.jsonl").write_text("{\n{}\n"), "line 1"),
        (lambda folder: (folder / "spec.json").write_text("[1]"), "JSON object"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_and_the_old_page_kept(
    damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    folder = fake_run(tmp_path / "run", seeds=1, domains=(("only", 2),))
    out = write_report([folder], tmp_path / "out" / "report.html")
    before = out.read_text()
    damage(folder)
    with pytest.raises(RunError, match=re.escape(message)):
        write_report([folder], out)
    assert out.read_text() == before
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="at least one run"):
        write_report([], tmp_path / "report.html")


def test_the_same_runs_give_the_same_bytes(runs: list[Path], tmp_path: Path) -> None:
    first, second = (write_report(runs, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_a_long_run_is_drawn_in_bins_and_says_so(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", seeds=1, domains=(("only", 900),))
    text, page = page_of([folder], tmp_path)
    assert "Each point is 3 rounds together" in page.text
    assert paths(progress_of(text), "line hue-0")[0].count("L") == 299


def test_a_domain_that_comes_back_is_told_apart(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", domains=(("day", 12), ("night", 12), ("day", 12)))
    _, page = page_of([folder], tmp_path)
    assert "day (2), last 10 rounds rounds 27 to 36" in page.text


def test_runs_of_different_streams_are_not_laid_over_each_other(tmp_path: Path) -> None:
    folders = [fake_run(tmp_path / name, seeds=1, name=name) for name in ("one", "two")]
    spec = json.loads((folders[1] / "spec.json").read_text())
    spec["stream"]["settings"]["generator"] = 1
    (folders[1] / "spec.json").write_text(json.dumps(spec))
    text, page = page_of(folders, tmp_path)
    assert page.text.count("Over time") == 2
    assert not any(paths(svg, "line hue-1") for svg in drawings(text))
    with pytest.raises(RunError, match="one stream"):
        write_picture(folders, tmp_path / "picture.svg")


def test_the_layers_of_expert_weights_fill_the_whole(runs: list[Path]) -> None:
    run = read_run(runs[0])
    [(_, _, chart)] = insides([run])
    layers = [curve.values.mean for curve in chart.panels[0].curves]
    assert [curve.name for curve in chart.panels[0].curves][:3] == [
        "1 round",
        "2 rounds",
        "4 rounds",
    ]
    assert [sum(column) for column in zip(*layers, strict=True)] == pytest.approx([1.0] * 90)


def test_the_picture_stands_alone(runs: list[Path], tmp_path: Path) -> None:
    text = write_picture(runs, tmp_path / "picture.svg").read_text()
    svg = ElementTree.fromstring(text)
    assert float(svg.get("width", 0)) > 0
    assert "prefers-color-scheme: dark" in text
    assert "script" not in text
    assert {"fairsaoml-live", "fairsaoml", "no constraint"} <= {node.text for node in svg.iter()}
    with pytest.raises(RunError, match=r"\.svg"):
        write_picture(runs, tmp_path / "picture.png")


def test_every_colour_is_named_in_the_style_sheet_for_light_and_for_dark(
    runs: list[Path], tmp_path: Path
) -> None:
    sheet = (files("fairsaoml.report") / "assets" / "chart.css").read_text()
    light, dark = sheet.split("prefers-color-scheme: dark")
    names = set(re.findall(r"(--[\w-]+): #", light))
    assert names
    assert names == set(re.findall(r"(--[\w-]+): #", dark.split(".hue-0")[0]))
    text, _ = page_of(runs, tmp_path)
    for svg in drawings(text):
        assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(", ElementTree.tostring(svg, "unicode"))
