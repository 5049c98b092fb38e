"""`fairsaoml compare`: one table of several learners, and only claims that the counts allow."""

import json
from statistics import stdev

import pytest

import tiny
from fairsaoml.compare.compare import _end, plan, recovery
from fairsaoml.core.errors import ConfigError
from fairsaoml.evaluate.metrics import figures, pooled
from fairsaoml.evaluate.rule import MARKS, worst
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.learners.registry import registered
from fairsaoml.runs.runner import Interrupted

SETTINGS = {**tiny.STREAM, **tiny.SHARED}
LEARNERS = ("aod", "fair-glc")


def words(folder, *more, learners=LEARNERS):
    pairs = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items() if key != "model"]
    options = [word for pair in [*pairs, "model=logistic"] for word in ("--set", pair)]
    return [
        *("compare", "synthetic", "--learners", ",".join(learners), "--seeds", 2),
        *(*options, "--out", folder, *more),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compared") / "all"


@pytest.fixture
def finished(folder, command):
    """A comparison of two learners; kept from test to test, for a second one only reads it."""
    said = command(*words(folder))
    assert said.code == 0, said.err
    return said


def test_every_learner_gets_a_folder_and_all_get_one_table_and_one_report(finished, folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {*LEARNERS, "comparison.json", "report.html"}
    for name in LEARNERS:
        assert (folder / name / "summary.json").exists()
    out = finished.out
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["accuracy", *LEARNERS]
    assert out.count("Take ") == 1
    assert max(map(len, out.splitlines())) <= 80
    page = (folder / "report.html").read_text()
    assert all(name in page for name in LEARNERS)


def test_the_comparison_says_what_the_summaries_say(finished, folder):
    comparison = json.loads((folder / "comparison.json").read_text())
    assert comparison["seeds"] == [0, 1]
    assert [entry["learner"] for entry in comparison["learners"]] == list(LEARNERS)
    for entry in comparison["learners"]:
        summary = json.loads((folder / entry["folder"] / "summary.json").read_text())
        for mine, theirs in (
            (entry["overall"], summary["overall"]),
            (entry["last"], summary["last"]),
            (entry["domains"][1], summary["domains"][1]),
            (entry["domains"][1]["last"], summary["domains"][1]["last"]),
        ):
            assert mine["rounds"] == theirs["rounds"]
            for name in ("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio"):
                assert mine[name]["pooled"] == theirs["pooled"][name]
                assert mine[name]["mean"] == theirs["mean"][name]
                assert mine[name]["spread"] == theirs["spread"][name]
        own = [
            figures(
                pooled(
                    [one for one in tiny.records(folder / entry["folder"]) if one["seed"] == seed]
                )
            )
            for seed in (0, 1)
        ]
        for name in ("accuracy", "balanced_accuracy"):  # what is printed, and its own spread
            spread = stdev(one[name] for one in own)
            assert entry["overall"][name]["pooled_spread"] == pytest.approx(spread, rel=1e-5)
        # Opposite gaps cancel in a pool over domains, so it carries no verdict.
        assert "rule" not in entry["overall"]["dp_ratio"]
        assert entry["domains"][0]["last"]["dp_ratio"]["rule"] in MARKS
        assert entry["seconds_per_round"] > 0
    blind, fair = comparison["learners"]
    assert (blind["constraints"], fair["constraints"]) == ("none", "dp")


def test_its_command_repeats_it(finished, folder):
    comparison = json.loads((folder / "comparison.json").read_text())
    repeated = comparison["command"].split()
    assert repeated[:5] == ["fairsaoml", "compare", "synthetic", "--learners", "aod,fair-glc"]
    assert "--set" in repeated
    assert "meta_iterations=2" in repeated


def test_a_comparison_that_is_there_is_kept_or_gone_on_with(finished, folder, command):
    before = {name: (folder / name / "rounds.jsonl").read_bytes() for name in LEARNERS}
    (folder / "comparison.json").unlink()
    (folder / "aod" / "summary.json").unlink()  # as if stopped at its last checkpoint
    said = command(*words(folder, "--json", "--quiet"))
    assert said.code == 0
    assert json.loads(said.out)["folder"] == str(folder)
    assert said.err == ""
    for name, content in before.items():
        assert (folder / name / "rounds.jsonl").read_bytes() == content


def test_another_run_in_the_folder_is_not_touched(finished, folder, command):
    before = (folder / "aod" / "spec.json").read_bytes()
    said = command(*words(folder, "--set", "tolerance=0.3"))
    assert said.code == 1
    assert "holds another run" in said.err
    assert (folder / "aod" / "spec.json").read_bytes() == before


def test_a_comparison_that_is_stopped_says_how_to_go_on(tmp_path, command, monkeypatch):
    def stopped(*arguments, **options):
        raise Interrupted("stopped after round 3")

    monkeypatch.setattr("fairsaoml.compare.engine.run", stopped)
    said = command(*words(tmp_path / "stopped"))
    assert said.code == 130
    assert "the same command continues" in said.err


def test_progress_names_learners_and_seeds(tmp_path, command):
    said = command(*words(tmp_path / "one", learners=("aod",)))
    assert "aod (1/1, 2 seeds)" in said.err
    assert "round 21/21 market-3" in said.err


def test_a_setting_goes_to_whoever_takes_it():
    specs = plan(
        "synthetic", ["aod", "fair-glc", "fairsaoml"], {"constraints": "eo", "rows": 9}, [3]
    )
    assert [spec.learner_settings for spec in specs] == [
        {},
        {"constraints": "eo"},
        {"constraints": "eo"},
    ]
    assert all(spec.stream_settings == {"rows": 9} for spec in specs)
    assert all(spec.seeds == (3,) for spec in specs)


def test_a_setting_that_nobody_takes_is_refused():
    with pytest.raises(ConfigError, match="unknown setting 'tolerence'; did you mean 'tolerance'"):
        plan("synthetic", ["aod", "cbce"], {"tolerence": 0.1}, [0])
    with pytest.raises(ConfigError, match="none of the learners takes constraints='dp'"):
        plan("synthetic", ["aod", "cbce"], {"constraints": "dp"}, [0])
    with pytest.raises(ConfigError, match="unknown learner 'aodd'"):
        plan("synthetic", ["aodd"], {}, [0])


def test_all_learners_are_those_registered(command, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "fairsaoml.compare.compare.plan",
        lambda stream, names, settings, seeds: asked.append((names, list(seeds))) or [],
    )
    monkeypatch.setattr("fairsaoml.compare.compare.compare", lambda *a, **k: {})
    command("compare", "synthetic", "--json")
    assert asked == [(list(registered()), list(range(10)))]


def lines_of(rounds, rows, selected, seeds=(0,), domain=""):
    """Rounds in which half of the men are selected, and this share of the women."""

    def counts(share):
        hit = round(rows / 2 * share)
        cell = {"rows": rows, "predicted_positive": 2 * hit, "y1_rows": rows // 2}
        return cell | {"true_positive": hit, "y0_rows": rows // 2, "false_positive": hit}

    groups = {"sex": {"f": counts(selected), "m": counts(0.5)}}
    return [
        {"round": number, "seed": seed, "domain": domain, "counts": groups}
        for number in range(1, rounds + 1)
        for seed in seeds
    ]


@pytest.mark.parametrize(
    ("rows", "selected", "rule"),
    [(4000, 0.5, "met"), (4000, 0.3, "missed"), (20, 0.5, "too few"), (20, 0.0, "missed")],
)
def test_the_rule_is_met_where_the_rows_can_tell_and_seeds_add_none(rows, selected, rule):
    """Ten rounds in which half of the men are selected, and this share of the women."""
    for seeds in (1, 5):
        lines = lines_of(10, rows, selected, range(seeds))
        summary = summarise(lines, learner="l", stream="s", seeds=range(seeds))
        end = _end(lines, summary["domains"][0], Asked())
        assert end["eo_ratio"]["rule"] == rule
        assert end["eo_ratio"]["low"] <= end["eo_ratio"]["ratio"] <= end["eo_ratio"]["high"]


def test_what_a_page_calls_fair_meets_the_rule_in_a_comparison():
    """Ten rounds of 30 rows could not tell; the page's verdict is on all of them."""
    asked = Asked(notions=("eo",), ratio=0.9)
    lines = lines_of(30, 30, 0.5)
    summary = summarise(lines, learner="l", stream="s", seeds=[0], asked=asked)
    page = summary["verdict"]["attributes"]["sex"]["notions"]["eo"]
    end = _end(lines, summary["domains"][0], asked)["eo_ratio"]
    assert (page["answer"], end["rule"]) == ("fair", "met")
    assert page["rounds"] == [4, 30]
    assert {key: end[key] for key in ("ratio", "low", "high", "rounds")} == {
        key: page[key] for key in ("ratio", "low", "high", "rounds")
    }


def test_a_domain_is_judged_by_its_own_rounds_and_not_by_its_first():
    """Ten rounds in which nobody is treated alike, then ten of one domain and one of a third."""
    unfair = [one | {"domain": "before"} for one in lines_of(10, 4000, 0.1)]
    lines = unfair + [one | {"round": one["round"] + 10} for one in lines_of(11, 4000, 0.5)]
    lines[10] |= {"counts": unfair[0]["counts"]}  # decided by what was learned before
    lines[20] |= {"domain": "after"}
    summary = summarise(lines, learner="l", stream="s", seeds=[0])
    ends = [_end(lines, domain, Asked())["dp_ratio"] for domain in summary["domains"]]
    assert [end["rule"] for end in ends] == ["missed", "met", "met"]
    assert [end["rounds"] for end in ends] == [[2, 10], [12, 20], [21, 21]]


def test_one_domain_that_misses_the_rule_is_a_miss():
    assert worst(["met", "missed", "too few"]) == "missed"
    assert worst(["met", "too few"]) == "too few"
    assert worst(["met", "met"]) == "met"


def line(round, right, positives):
    """A round of two groups of ten: so many right, so many of the second group accepted."""
    one = {"rows": 10, "predicted_positive": 5, "y1_rows": 5, "true_positive": 5}
    other = {"rows": 10, "predicted_positive": positives, "y1_rows": 5, "true_positive": 0}
    wrong = 10 - right
    counts = {
        "one": {**one, "y0_rows": 5, "false_positive": 0},
        "other": {**other, "true_positive": 5 - wrong, "y0_rows": 5, "false_positive": 0},
    }
    return {"round": round, "counts": {"group": counts}}


def test_recovery_is_two_rounds_in_a_row_with_accuracy_and_fairness_back():
    lines = [
        line(4, right=6, positives=5),  # not yet accurate
        line(5, right=10, positives=2),  # accurate, not yet fair
        line(6, right=10, positives=5),
        line(7, right=10, positives=5),
        line(8, right=10, positives=5),
    ]
    end = {"last": {"pooled": {"accuracy": 1.0, "dp_ratio": 1.0}}}
    assert recovery(lines, {"rounds": [4, 8], **end}) == 4
    assert recovery(lines, {"rounds": [6, 8], **end}) == 2
    assert recovery(lines[:2], {"rounds": [4, 5], **end}) is None
