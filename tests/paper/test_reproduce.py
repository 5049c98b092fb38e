"""`python -m paper reproduce`: every figure from its runs, no run twice, the runs' own numbers."""

import json
import re
import shutil
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from types import SimpleNamespace

import pytest
from paper.drawing.by_round import smoothed
from paper.drawing.index import to_html
from paper.drawing.style import LEVELS
from paper.plan import EXHIBITS, Choice, Variant, folder_of, jobs_of, spec_of
from paper.settings import TUNED, settings_for
from paper.tables import Row, quality

import tiny
from fairsaoml.core import intervals
from fairsaoml.core.errors import ConfigError
from fairsaoml.evaluate.metrics import figures, pooled
from fairsaoml.report.reading import Domain, read_run
from fairsaoml.runs.folder import read_spec, write_spec
from fairsaoml.runs.runner import run
from paper import plan as paper
from paper import reproduce, runtime

SETTINGS = {**tiny.STREAM, **tiny.SETTINGS["fairsaoml"]}
QUICK = Choice(streams=["synthetic"], learners=["fairsaoml", "aod"], seeds=2, settings=SETTINGS)
LARGEST_FIGURE = 150_000  # bytes: small enough to be committed


def words(what, out, *more, choice=QUICK):
    return ["reproduce", what, *choice.options(), "--out", out, *more]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A finished run of the paper's learner, to stand for others where nobody reads the numbers."""
    folder = tmp_path_factory.mktemp("played") / "fairsaoml"
    run(tiny.spec("fairsaoml"), folder)
    return folder


def pretend(jobs, played):
    """Folders as if every job had been played; their rounds are those of one run."""
    for job in jobs:
        shutil.copytree(played, job.folder)
        content, spec = read_spec(played), job.spec
        content["learner"] |= {"name": spec.learner, "settings": dict(spec.learner_settings)}
        content["stream"] |= {"name": spec.stream, "settings": dict(spec.stream_settings)}
        write_spec(job.folder, content | {"seeds": list(spec.seeds)})


@pytest.fixture(scope="module")
def everything(tmp_path_factory, played):
    """The folder of an evaluation of all exhibits on two streams, drawn from pretended runs."""
    out = tmp_path_factory.mktemp("everything")
    choice = Choice(streams=["synthetic", "synthetic-gradual"], seeds=2, settings=SETTINGS)
    exhibits = list(EXHIBITS.values())
    pretend(jobs_of(exhibits, choice, out), played)
    events, said = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "measured", fake_timing)
        patch.setitem(sys.modules, "paper.bounds", THEORY)
        reproduce.reproduce(exhibits, choice, out, on_event=events.append, say=said.append)
    assert {event.kind for event in events} == {"kept"}
    return out


def fake_timing(spec, file, *, force):
    found = {"learner": spec.learner, "median": 0.012, "quartiles": [0.011, 0.0134], "first": 7.25}
    return found | {"seeds": list(spec.seeds)}


THEORY = SimpleNamespace(
    measure_bounds=lambda **asked: {"learners": asked["learners"], "seeds": asked["seeds"]},
    bounds_table=lambda data: (
        "| learner | growth |\n|---|---|\n| " + data["learners"][0] + " | 1 |"
    ),
)


def classes(picture):
    """The classes of all groups of a figure, in the order they are drawn."""
    return [group.get("class") for group in picture.iter() if group.get("class")]


def texts(picture, name):
    """The words of a figure in groups of a class."""
    groups = [group for group in picture.iter() if group.get("class") == name]
    return ["".join(group.itertext()).strip() for group in groups]


# What is run


def test_the_whole_evaluation_plays_each_run_once():
    jobs = jobs_of(list(EXHIBITS.values()), Choice(), Path("out"))
    assert len({job.folder for job in jobs}) == len(jobs)
    # On each stream: everyone; the paper's with its settings; four ablations; three bases, for base
    # 2 is the plain learner. A learner whose tuned settings are the paper's is run once.
    each = len(paper.LEARNERS) + len(paper.PAPER) + 4 + 3
    same = sum(
        spec_of(Variant(name, name), stream, Choice())
        == spec_of(Variant(name, name, printed=True), stream, Choice())
        for name in paper.PAPER
        for stream in paper.STREAMS
    )
    assert len(jobs) == len(paper.STREAMS) * each - same
    assert all(job.spec.seeds == tuple(range(10)) for job in jobs)


def test_ablations_change_what_they_say_and_nothing_else():
    whole, weights, learner, *covers = (
        spec_of(variant, "synthetic", Choice()) for variant in EXHIBITS["ablation"].variants
    )
    for cover, one in zip(("doubling", "dynamic"), covers, strict=True):
        assert dict(one.learner_settings) == {**whole.learner_settings, "cover": cover}
    assert dict(weights.learner_settings) == {**whole.learner_settings, "combiner": "uniform"}
    assert dict(learner.learner_settings) == {**whole.learner_settings, "inner_steps": 0}


def test_the_papers_own_settings_are_not_mixed_with_what_a_search_chose():
    """Its appendix: base 3 on MovieLens; draws of 400 rows a class on stop-and-frisk; delta 10."""
    whole = {"dual_damping": 10.0, "initial_dual": 1e-5, "base": 3}
    both = Choice(settings={"constraints": "dp+eo"})
    own = spec_of(Variant("x", "fairsaoml", printed=True), "movielens", both)
    assert dict(own.learner_settings) == whole
    frisked = spec_of(Variant("x", "aod", printed=True), "stop-and-frisk:RQS", both)
    assert dict(frisked.learner_settings) == {"support": 400, "capacity": 2000}


def test_a_folder_is_named_after_all_settings_defaults_included(monkeypatch):
    plain = spec_of(Variant("aod", "aod"), "movielens", Choice())
    here = folder_of(plain, Path("out"))
    assert here == folder_of(spec_of(Variant("x", "aod"), "movielens", Choice()), Path("out"))
    other = folder_of(spec_of(Variant("aod", "aod"), "movielens", Choice(seeds=9)), Path("out"))
    assert other != here
    configure = paper.registry.configure

    def other_defaults(name, settings=None):
        return configure(name, {"tolerance": 0.123, **(settings or {})})

    monkeypatch.setattr(paper.registry, "configure", other_defaults)
    assert folder_of(plain, Path("out")) != here


def test_tuned_settings_are_the_learners_and_a_streams_own_come_first(tmp_path):
    (tmp_path / "aod.toml").write_text(
        '# the command\nsupport = 50\ntolerance = 0.1\n["stop-and-frisk:BMS"]\nsupport = 7\n'
    )
    assert settings_for("aod", "movielens", tmp_path) == {"support": 50, "tolerance": 0.1}
    assert settings_for("aod", "stop-and-frisk:BMS", tmp_path)["support"] == 7
    assert settings_for("cbce", "movielens", tmp_path) == {}
    (tmp_path / "cbce.toml").write_text("support =")
    with pytest.raises(ConfigError, match="is not TOML"):
        settings_for("cbce", "movielens", tmp_path)


def test_every_committed_setting_is_one_its_learner_takes():
    for name in [file.stem for file in TUNED.glob("*.toml")]:  # none, until a search has been run
        for stream in paper.STREAMS:
            paper.registry.configure(name, settings_for(name, stream))


# The command


def test_the_quick_form_plays_draws_and_a_second_call_only_draws(tmp_path, command):
    said = command(*words("figure-3", tmp_path, "--jobs", 2))
    assert said.code == 0, said.err
    assert "synthetic: fairsaoml" in said.err
    assert "finished: 2/2 runs" in said.err
    assert said.out.strip() == f"page: {tmp_path / 'index.html'}"
    drawn = {path: path.read_bytes() for path in tmp_path.glob("[ft]*/*")}
    rounds = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rounds.jsonl")}
    assert len(rounds) == 2
    again = command(*words("figure-3", tmp_path, "--jobs", 2))
    assert again.code == 0
    assert "finished" not in again.err
    assert {path: path.stat().st_mtime_ns for path in rounds} == rounds
    assert {path: path.read_bytes() for path in drawn} == drawn
    # The command on the page is the one that was given.
    content = json.loads((tmp_path / "tables" / "quality.json").read_text())
    assert content["command"].split()[:5] == ["python", "-m", "paper", "reproduce", "figure-3"]
    assert "--learners fairsaoml,aod --seeds 2" in content["command"]


def test_an_unknown_exhibit_is_named_with_what_was_meant(tmp_path, command):
    said = command("reproduce", "figure-4", "--out", tmp_path)
    assert said.code == 2
    assert "unknown exhibit 'figure-4'; did you mean 'figure-" in said.err


def test_a_setting_that_nobody_takes_is_refused(tmp_path, command):
    said = command("reproduce", "figure-3", "--set", "tolerence=1", "--out", tmp_path)
    assert said.code == 2
    assert "did you mean 'tolerance'" in said.err


# Figures and tables


def test_figure_1_marks_the_target_set_and_draws_every_interval(tmp_path, command):
    assert command("reproduce", "figure-1", "--out", tmp_path).code == 0
    picture = xml.fromstring((tmp_path / "figures" / "figure-1.svg").read_text())
    bars = [name for name in classes(picture) if name.split()[0] == "interval"]
    assert len(bars) == sum(map(len, intervals.cover(18, 2)))
    assert bars.count("interval chosen") == 3
    assert texts(picture, "on chosen") == ["[5,5]", "[5,6]", "[5,8]"]


def test_all_is_drawn_small_and_stands_on_one_page(everything):
    figures_ = sorted(path.name for path in (everything / "figures").iterdir())
    names = ("ablation", "base", "figure-1", "figure-3-printed", "figure-3", "runtime")
    assert figures_ == [f"{name}.svg" for name in names]
    for path in (everything / "figures").iterdir():
        xml.fromstring(path.read_text())
        assert path.stat().st_size < LARGEST_FIGURE
        assert "NaN" not in path.read_text()
        assert "nan" not in path.read_text()
    page = (everything / "index.html").read_text()
    for exhibit in EXHIBITS.values():
        assert f'<section id="{exhibit.name}">' in page
        options = " --streams synthetic,synthetic-gradual" if exhibit.variants else "</code>"
        assert f"python -m paper reproduce {exhibit.name}{options}" in page
        tiny.strictly((everything / "tables" / f"{exhibit.table_name}.json").read_text())
    assert page.count("<svg") >= 5
    outside = re.sub(r"http://www\.w3\.org/(2000/svg|1999/xlink)", "", page)  # names, not links
    assert "http" not in outside


def test_figure_3_has_four_panels_a_stream_and_a_line_for_everyone(everything):
    picture = xml.fromstring((everything / "figures" / "figure-3.svg").read_text())
    titles = ["DP", "EO", "Accuracy", "Weights of fairsaoml's experts"]
    assert texts(picture, "title") == titles * 2
    assert texts(picture, "heading") == ["synthetic", "synthetic-gradual"]
    drawn = classes(picture)
    for name in paper.LEARNERS:
        assert drawn.count(f"line {name}") == 3 * 2
        assert texts(picture, "name").count(name) == 3  # at the lines' ends, in the last column
    # Our learners and the paper's have bands; the others stand behind them, without.
    assert drawn.count("band") == len(reproduce.FRONT) * 3 * 2
    assert drawn.count("rule") == 2 * 2
    assert drawn.count("change") == 2 * 2 * 4  # streams x changes x panels


def test_a_figure_says_in_words_what_it_shows_and_follows_the_page_into_the_dark(everything):
    for path in (everything / "figures").iterdir():
        text = path.read_text()
        picture = xml.fromstring(text)
        assert picture.get("role") == "img"
        title, description, sheet = list(picture)[:3]
        assert title.text
        assert description.text
        drawn = set(re.findall(r"(?:fill|stroke): (#\w{6})", text))
        kept = {*LEVELS, "#14202b", "#fefefe", "#1c2025"}  # readable on light and dark pages
        for colour in drawn - kept:
            assert f'"fill: {colour}"' in sheet.text, (path.name, colour)
        assert "prefers-color-scheme:dark" in sheet.text


def test_the_timing_table_says_the_first_round_apart(everything):
    text = (everything / "tables" / "runtime.md").read_text()
    assert "| aod | 12.0 | 12.0 | 7.25 | 7.25 |" in text
    data = json.loads((everything / "tables" / "runtime.json").read_text())["data"]
    assert data["synthetic"][0]["seeds"] == [0]


def test_bounds_are_asked_for_the_paper_s_learners_and_their_table_is_on_the_page(everything):
    data = json.loads((everything / "tables" / "bounds.json").read_text())["data"]
    assert data == {"learners": list(paper.PAPER), "seeds": [0, 1]}
    assert "<th>learner</th>" in (everything / "index.html").read_text()


def test_quality_pools_counts_and_strays_over_seeds(played):
    (row,) = quality([Row("it", "paper", read_run(played))])
    summary = json.loads((played / "summary.json").read_text())
    lines = tiny.records(played)
    titles = [block["title"] for block in row["blocks"]]
    assert titles[0] == "All rounds"
    assert sum(block["end"] for block in row["blocks"]) == 3
    domain = summary["domains"][1]
    block = next(found for found in row["blocks"] if found["title"] == domain["name"])
    first, last = domain["rounds"]
    for name in ("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio"):
        assert block["figures"][name]["pooled"] == domain["pooled"][name]
        seeds = []
        for seed in tiny.SEEDS:
            own = [li for li in lines if li["seed"] == seed and first <= li["round"] <= last]
            seeds.append(figures(pooled(own))[name])
        one, other = seeds
        expected = abs(one - other) / 2**0.5 if None not in seeds else None
        assert block["figures"][name]["spread"] == pytest.approx(expected)


def test_peers_are_rows_of_their_streams_tables_and_marked(tmp_path, played, command):
    pretend(jobs_of([EXHIBITS["figure-3"]], QUICK, tmp_path), played)
    peer = tmp_path / "peers" / "synthetic" / "some-regression"
    shutil.copytree(played, peer)
    shutil.copytree(played, tmp_path / "peers" / "movielens" / "of-another-stream")
    other = tmp_path / "peers" / "movielens" / "of-another-stream" / "summary.json"
    other.write_text(json.dumps(json.loads(other.read_text()) | {"stream": "movielens"}))
    assert command(*words("figure-3", tmp_path, "--quiet")).code == 0
    text = (tmp_path / "tables" / "quality.md").read_text()
    assert "| *some-regression* |" in text
    assert "of-another-stream" not in text
    rows = json.loads((tmp_path / "tables" / "quality.json").read_text())["data"]["synthetic"]
    assert [row["kind"] for row in rows] == ["paper", "paper", "alternative"]


def test_a_point_is_the_mean_of_the_last_rounds_of_its_domain_and_undefined_is_a_gap():
    values = {1: 0.2, 2: 0.4, 3: None, 4: 0.6, 5: 1.0}
    run_ = SimpleNamespace(
        lines=[
            {"round": t, "seed": seed, "dp": None if v is None else v + seed / 10}
            for t, v in values.items()
            for seed in (0, 1)
        ],
        rounds=list(values),
        seeds=[0, 1],
        domains=[Domain("a", 1, 3), Domain("b", 4, 5)],
    )
    found = smoothed(run_, "dp", rounds=2)
    assert found.mean[2] is None
    assert found.low[:2] == pytest.approx([0.2, 0.3])
    assert found.low[3:] == pytest.approx([0.6, 0.8])  # round 4 begins anew
    assert found.mean[:2] == pytest.approx([0.25, 0.35])
    assert found.high[3:] == pytest.approx([0.7, 0.9])


# Times


def test_a_round_is_timed_after_the_warm_up_and_kept(tmp_path, monkeypatch):
    seconds = [9.0, 5.0] + [0.01, 0.02, 0.03, 0.04] * 6 + [99.0]
    asked = []

    def rounds(*arguments):
        asked.append(arguments)
        for at, value in enumerate(seconds, start=1):
            yield SimpleNamespace(round=at, records=[{"seconds": value}])

    monkeypatch.setattr(runtime, "prequential", rounds)
    spec = spec_of(Variant("aod", "aod"), "synthetic", Choice(seeds=1))
    file = runtime.timing_file(spec, tmp_path)
    found = runtime.measured(spec, file)
    assert (found["first"], found["median"], found["rounds"]) == (9.0, 0.025, 24)
    assert found["quartiles"][0] < found["median"] < found["quartiles"][1] < 5.0
    assert runtime.measured(spec, file) == found
    assert len(asked) == 1
    runtime.measured(spec, file, force=True)
    assert len(asked) == 2


def test_times_are_measured_at_the_defaults_with_one_seed(monkeypatch, tmp_path):
    specs = []
    monkeypatch.setattr(reproduce, "settings_for", None, raising=False)
    monkeypatch.setattr(paper, "settings_for", lambda learner, stream: {"support": 7})
    monkeypatch.setattr(
        reproduce, "measured", lambda spec, file, force: specs.append(spec) or fake_timing(
            spec, file, force=force)
    )  # fmt: skip
    drawer = reproduce.Evaluation(Choice(streams=["synthetic"]), tmp_path, False, print)
    reproduce.DRAW["runtime"](drawer, EXHIBITS["runtime"])
    assert [spec.learner for spec in specs] == list(paper.LEARNERS)
    assert all(spec.seeds == (0,) and not spec.learner_settings for spec in specs)


def test_markdown_of_our_tables_becomes_elements_and_nothing_else():
    drawn = to_html("## A & B\n\n- `x`\n- <b>\n\n| **n** | v |\n|:--|--:|\n| *p* | .5 ± .1 |\n")
    assert drawn.replace("\n", "") == (
        "<h2>A &amp; B</h2><ul><li><code>x</code></li><li>&lt;b&gt;</li></ul>"
        '<div class="scroll"><table><thead><tr><th style="text-align:left"><strong>n</strong>'
        '</th><th style="text-align:right">v</th></tr></thead><tbody><tr>'
        '<td style="text-align:left"><em>p</em></td><td style="text-align:right">.5 ± .1</td>'
        "</tr></tbody></table></div>"
    )
