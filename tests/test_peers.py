"""Alternatives: other libraries' models, on our rounds, in our files."""

import csv
import json
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tiny
from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan, run_alternative
from fairsaoml.compare.alternatives import catalog as catalog_module
from fairsaoml.compare.alternatives.catalog import Refitted, words
from fairsaoml.compare.alternatives.runs import prequential
from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.core.types import Attribute
from fairsaoml.evaluate.summary import summarise
from fairsaoml.learners.registry import DEFAULT
from fairsaoml.report import write_report
from fairsaoml.runs.folder import is_finished
from fairsaoml.streams.catalog import open_stream

SHORT = {"tasks": 1, "rows": 60}  # three domains of one round: reductions take half a second each
ROUNDS = 3
SHORTEST = {**SHORT, "domains": 2}  # one fit, and a round that is decided by it
LONGER = {**SHORT, "tasks": 2}
FAIRLEARN = [name for name, listing in CATALOG.items() if listing.package == "fairlearn"]
REFITTED = [name for name in CATALOG if "window" in catalog_module.defaults(name)]

every_peer = pytest.mark.parametrize("peer", CATALOG)


def lines_of(peer, stream=None, seeds=(0,), **settings):
    """The lines of a run, round by round, seed by seed."""
    stream = stream or open_stream("synthetic", SHORT)
    results = prequential(stream, peer, settings, seeds)
    return [line for result in results for line in result.records]


def decided(lines):
    """How many rows of each group were decided positive, by line."""
    return [
        {level: found["predicted_positive"] for level, found in line["counts"]["group"].items()}
        for line in lines
    ]


def changed(change, settings=SHORT):
    """The short stream with `change(round, task)` in the place of each task."""
    return tiny.perturbed(open_stream("synthetic", settings), change)


def beginning_with(name, value):
    """The shortest stream with one value for all labels, or all groups, of its first task."""

    def change(round, task):
        same = np.full_like(getattr(task, name), value)
        return task._replace(**{name: same}) if round == 1 else task

    return changed(change, SHORTEST)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """All peers in folders; look, do not touch."""
    folder = tmp_path_factory.mktemp("peers")
    specs = plan("synthetic", list(CATALOG), stream_settings=SHORT)
    for spec in specs:
        run_alternative(spec, folder / spec.label)
    return specs, folder


@pytest.fixture
def plain_lines(peer, played):
    """The lines of a peer's run on the short stream."""
    specs, folder = played
    (label,) = (spec.label for spec in specs if spec.alternative == peer)
    return tiny.records(folder / label)


@tiny.one_learner
def test_a_peers_line_has_the_keys_of_our_learners_lines(played, finished):
    specs, folder = played
    ours = tiny.records(finished)[0]
    for spec in specs:
        for line in tiny.records(folder / spec.label):
            assert list(line) == list(ours)


def test_a_peers_summary_is_that_of_its_lines(played):
    specs, folder = played
    best = open_stream("synthetic", SHORT).best
    for spec in specs:
        lines = tiny.records(folder / spec.label)
        assert len(lines) == ROUNDS
        written = tiny.strictly((folder / spec.label / "summary.json").read_text())
        found = summarise(lines, learner=spec.label, stream="synthetic", seeds=[0], best=best)
        assert written["learner"] == spec.alternative
        for block in ("overall", "last"):
            assert written[block]["pooled"]["counts"] == found[block]["pooled"]["counts"]
            assert written[block]["pooled"]["accuracy"] == pytest.approx(
                found[block]["pooled"]["accuracy"], rel=1e-6
            )
        assert [domain["name"] for domain in written["domains"]] == list(best)


def test_what_to_take_of_peers_says_that_our_learners_are_not_among_them(played, command):
    _, folder = played
    options = [word for pair in SHORT.items() for word in ("--set", "{}={}".format(*pair))]
    said = command("peers", "synthetic", *options, "--out", folder)  # all are finished
    out = " ".join(said.out.split())
    assert (said.code, out.count("Of these, take "), out.count("Take ")) == (0, 1, 0)
    assert (
        f"fairsaoml compare synthetic --learners {DEFAULT} with the same options of the stream"
        in out
    )


@tiny.one_learner
def test_a_report_shows_peers_beside_ours(played, finished, tmp_path):
    specs, folder = played
    folders = [finished, *(folder / spec.label for spec in specs)]
    page = write_report(folders, tmp_path / "report.html").read_text()
    assert "needs the group of everyone it decides on" in page
    assert all(spec.label in page for spec in specs)
    inside = page.partition("Inside the learner")[2].partition("</details>")[0]
    assert "Inside the learner" not in page.replace(inside, "").partition("Inside the learner")[2]
    assert finished.name in inside
    assert not any(spec.label in inside for spec in specs)  # nobody can look into them


def test_the_comparison_has_a_row_a_peer_with_words(played):
    specs, folder = played
    found = compare_alternatives(specs, folder)
    assert [entry["learner"] for entry in found["learners"]] == list(CATALOG)
    kept = {entry["learner"]: entry["constraints"] for entry in found["learners"]}
    assert kept["expgrad-eo"] == "eo"
    assert kept["sgd"] == "none"
    assert found["command"].startswith(
        "fairsaoml peers synthetic --alternatives logistic-refit,boosted-refit,sgd,"
    )
    assert found["command"].endswith("--seeds 1 --set tasks=1 --set rows=60")


def test_the_words_say_what_was_fitted_and_for_whom_it_is_fair():
    one = open_stream("synthetic", SHORT).schema
    two = one._replace(attributes=(*one.attributes, Attribute("age", ("young", "old"))))
    assert words("logistic-refit", {}, two).endswith("; refitted each round on all the past")
    assert words("threshold", {"every": 3, "window": 8}, two).endswith(
        "; refitted every 3 rounds on the last 8 tasks; "
        "fair by group, whatever the other attributes"
    )
    assert "fair by" not in words("threshold", {}, one)
    assert words("sgd", {"balanced": True}, two).endswith("; both classes weigh the same")


@every_peer
def test_before_any_label_everybody_gets_class_0(plain_lines):
    first, *later = plain_lines
    assert first["positive_rate"] == 0
    assert any(line["positive_rate"] > 0 for line in later)


@every_peer
def test_a_task_is_decided_before_its_labels_are_seen(peer, plain_lines):
    turned = 2

    def change(round, task):
        return task._replace(y=1 - task.y) if round >= turned else task

    plain, other = decided(plain_lines), decided(lines_of(peer, changed(change)))
    assert plain[:turned] == other[:turned]
    assert plain[turned:] != other[turned:]


@pytest.mark.parametrize("peer", [name for name, listing in CATALOG.items() if listing.random])
def test_seeds_differ_on_the_same_rows_where_a_peer_is_random(peer):
    stream = replace(open_stream("synthetic", {"tasks": 1, "rows": 200}), seeded=False)
    lines = lines_of(peer, stream, seeds=(0, 1))
    assert decided(lines[::2]) != decided(lines[1::2])


def test_logistic_refit_is_logistic_regression_on_all_the_past():
    stream = open_stream("synthetic", LONGER)
    tasks = list(stream.tasks(0))
    lines = lines_of("logistic-refit", stream)
    for round in range(2, len(tasks) + 1):
        task, past = tasks[round - 1], tasks[: round - 1]
        x, y = (np.concatenate([getattr(one, name) for one in past]) for name in ("x", "y"))
        right = LogisticRegression().fit(x, y).predict(task.x) == task.y
        assert lines[round - 1]["accuracy"] == np.mean(right)


@every_peer
def test_balanced_weighs_a_rare_class_like_the_other(peer):
    def rare(round, task):
        kept = (task.y == 0) | (np.arange(len(task.y)) % 5 == 0)
        return task._replace(x=task.x[kept], y=task.y[kept], group=task.group[kept])

    plain, balanced = (
        np.mean([line["positive_rate"] for line in lines_of(peer, changed(rare), **settings)[1:]])
        for settings in ({}, {"balanced": True})
    )
    assert balanced > plain + 0.1


@every_peer
def test_a_balanced_past_of_one_class_or_one_group_is_no_accident(peer):
    lines = lines_of(peer, beginning_with("y", 1), balanced=True)
    assert lines[0]["positive_rate"] == 0  # nothing learned
    assert lines[1]["positive_rate"] > 0.9
    assert len(lines_of(peer, beginning_with("group", 0), balanced=True)) == 2


def test_a_lower_ratio_asked_of_fairlearn_leaves_more_accuracy_and_a_wider_gap():
    stream = open_stream("synthetic", {"tasks": 2, "rows": 300, "domains": 1})
    free, held = (lines_of("expgrad", stream, ratio=ratio)[1] for ratio in (0.3, 1.0))
    assert held["dp_ratio"] > free["dp_ratio"] + 0.2
    assert free["accuracy"] > held["accuracy"]


@pytest.mark.parametrize("peer", ["logistic-refit", "threshold"])
def test_what_left_the_window_is_forgotten(peer):
    def change(round, task):
        return task._replace(y=1 - task.y) if round == 1 else task

    streams = (open_stream("synthetic", LONGER), changed(change, LONGER))
    plain, other = (decided(lines_of(peer, stream, window=2)) for stream in streams)
    # Round 2 is decided by round 1 alone, round 4 by rounds 2 and 3.
    assert plain[1] != other[1]
    assert plain[3:] == other[3:]


def test_refitting_every_third_round_keeps_a_fit_for_three():
    fitted = []

    def fit(x, y, group):
        fitted.append(len(y))
        return lambda x, group: np.ones(len(x), int)

    peer = Refitted(fit, window=None, every=3)
    for task in open_stream("synthetic", {"tasks": 3, "rows": 60}).tasks(0):
        peer.learn(task)
    assert fitted == [60, 240, 420]


@every_peer
def test_a_past_of_one_class_is_no_accident(peer):
    lines = lines_of(peer, beginning_with("y", 1))
    assert len(lines) == 2
    assert lines[1]["positive_rate"] > 0.9  # nothing else has been seen
    if peer in REFITTED:
        assert lines[1]["positive_rate"] == 1
        assert lines[0]["warnings"] == ["all rows to fit on have y = 1: that is what is decided"]


@every_peer
def test_a_past_of_one_group_is_no_accident(peer):
    lines = lines_of(peer, beginning_with("group", 0))
    assert len(lines) == 2
    if peer in FAIRLEARN:
        assert lines[0]["warnings"] == ["no two groups have both classes: the fit is a plain one"]
        assert lines[1]["warnings"] == []


@pytest.mark.parametrize("peer", FAIRLEARN)
def test_a_group_of_one_class_or_never_declared_is_decided_but_not_fitted_on(peer):
    undeclared = 2

    def change(round, task):
        task.group[:5] = undeclared
        return task

    first, *later = lines_of(peer, changed(change, SHORTEST))
    said = {warning for line in later for warning in line["warnings"]}
    assert "5 rows of groups with one class were not fitted on" in first["warnings"]
    if peer == "threshold":
        assert "5 rows of groups with no threshold: decided by the plain classifier" in said
    assert all(line["counts"]["group"]["not known"]["rows"] == 5 for line in later)


@every_peer
def test_an_empty_task_is_gone_through(peer):
    def change(round, task):
        rows = slice(0 if round != 2 else None)
        return task._replace(x=task.x[rows], y=task.y[rows], group=task.group[rows])

    lines = lines_of(peer, changed(change))
    for at in (0, 2):
        assert lines[at]["rows"] == 0
        assert lines[at]["accuracy"] is None
        assert lines[at]["warnings"] == ["the task is empty: nothing learned, figures are null"]
    assert lines[1]["positive_rate"] == 0  # still nothing learned


def test_a_finished_peer_is_kept_and_one_that_was_stopped_starts_anew(tmp_path):
    (spec,) = plan("synthetic", ["sgd"], stream_settings=SHORT)
    folder = tmp_path / spec.label

    class Stop(Exception):
        pass

    def stop(event):
        if event.round == 2:
            raise Stop

    with pytest.raises(Stop):
        run_alternative(spec, folder, on_event=stop)
    assert len(tiny.records(folder)) == 2
    assert not is_finished(folder)
    summary = run_alternative(spec, folder)
    journal = (folder / "rounds.jsonl").read_bytes()
    assert len(tiny.records(folder)) == ROUNDS
    assert run_alternative(spec, folder) == summary
    assert (folder / "rounds.jsonl").read_bytes() == journal  # the times, too


def test_another_spec_does_not_replace_a_run_unless_forced(tmp_path):
    (spec,) = plan("synthetic", ["sgd"], stream_settings=SHORT)
    run_alternative(spec, tmp_path / "sgd")
    with pytest.raises(RunError, match="holds another run"):
        run_alternative(replace(spec, seeds=(1,)), tmp_path / "sgd")
    run_alternative(replace(spec, seeds=(1,)), tmp_path / "sgd", force=True)
    assert {line["seed"] for line in tiny.records(tmp_path / "sgd")} == {1}


def test_real_rows_need_one_seed_unless_the_peer_is_random(tmp_path):
    path = tmp_path / "loans.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sex", "paid"])
        for at in range(120):
            writer.writerow([20 + 17 * at % 41, "fm"[at % 2], at % 3 == 0])
    settings = {"label": "paid", "sensitive": "sex", "rows": 40}
    specs = plan(str(path), list(CATALOG), stream_settings=settings, seeds=range(3))
    assert {spec.alternative for spec in specs if len(spec.seeds) == 1} == {
        "logistic-refit",
        "boosted-refit",
        "river-logistic",
    }


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(catalog_module, "version", missing)
    with pytest.raises(ConfigError, match=r"expected river .* pip install 'fairsaoml\[river\]'"):
        plan("synthetic", ["river-forest"])


def test_an_unknown_peer_or_setting_is_a_question():
    with pytest.raises(ConfigError, match="did you mean 'expgrad'"):
        plan("synthetic", ["expgrat"])
    with pytest.raises(ConfigError, match="did you mean 'rows'"):
        plan("synthetic", ["sgd"], stream_settings={"row": 3})


def test_the_command_prints_a_row_a_peer_and_keeps_what_is_finished(command, tmp_path):
    typed = ["peers", "synthetic", "--peers", "sgd,threshold", "--refit-every", 3]
    typed += ["--set", "tasks=3", "--set", "rows=60", "--out", tmp_path]
    said = command(*typed)
    assert said.code == 0, said.err
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"sgd", "threshold-every-3", "comparison.json"}
    assert "threshold-every-3: Fairlearn ThresholdOptimizer" in said.out
    assert "round 9/9" in said.err
    again = command(*typed, "--json")
    assert "round 9/9" not in again.err
    found = json.loads(again.out)
    assert (
        json.loads((tmp_path / "comparison.json").read_text()) | {"folder": str(tmp_path)} == found
    )
    assert [entry["learner"] for entry in found["learners"]] == ["sgd", "threshold-every-3"]
    assert "--refit-every 3" in found["command"]


def test_folders_that_an_older_version_wrote_are_kept(tmp_path):
    (spec,) = plan("synthetic", ["sgd"], stream_settings=SHORT)
    folder = tmp_path / spec.label
    run_alternative(spec, folder)
    written = json.loads((folder / "spec.json").read_text())
    written["command"] = "fairsaoml peers synthetic --peers sgd --seeds 1"
    written["versions"] = {"fairsaoml": "0.0.9"}
    del written["spec_sha256"]  # there was none
    del written["learner"]["config"]["balanced"]  # nor could it be asked for
    (folder / "spec.json").write_text(json.dumps(written))
    before = (folder / "rounds.jsonl").read_bytes()
    run_alternative(spec, folder)
    assert (folder / "rounds.jsonl").read_bytes() == before


def test_every_peer_is_told_to_decide_as_asked(command, tmp_path):
    typed = ["peers", "synthetic", "--set", "tasks=1", "--set", "rows=60", "--out", tmp_path]
    said = command(*typed, "--decision", "balanced", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    for entry, name in zip(found["learners"], CATALOG, strict=True):
        assert (entry["learner"], entry["settings"]) == (f"{name}-balanced", {"balanced": True})
        assert "both classes weigh the same" in entry["what"]
    assert "--seeds 1 --decision balanced --set tasks=1" in found["command"]
    again = command(*typed, "--set", "decision=balanced", "--json")  # all are finished
    assert json.loads(again.out) == found
    assert "round 3/3" not in again.err
    plain = command(*typed, "--peers", "sgd", "--decision", "accuracy", "--json")  # beside them
    assert json.loads(plain.out)["learners"][0]["learner"] == "sgd"
    assert "--decision" not in json.loads(plain.out)["command"]


@pytest.mark.parametrize("asked", ["0.3", "fair", "[1]"])
def test_a_decision_that_no_peer_can_take_is_refused(command, tmp_path, asked):
    for typed in (["--decision", asked], ["--set", f"decision={asked}"]):
        said = command("peers", "synthetic", *typed, "--out", tmp_path / "peers")
        assert said.code == 2
        assert "must be accuracy or balanced, got " in said.err
    assert not (tmp_path / "peers").exists()


def test_on_a_table_peers_say_where_they_decide_and_what_a_run_would_take(command, tmp_path):
    path = tmp_path / "loans.csv"
    lines = [f"{20 + 17 * at % 41},{'fm'[at % 2]},{at % 5 == 0}" for at in range(120)]
    path.write_text("\n".join(["age,sex,paid", *lines]) + "\n")
    typed = ["peers", path, "--label", "paid", "--sensitive", "sex", "--rows", 40, "--peers", "sgd"]
    typed += ["--out", tmp_path / "peers"]
    told = "decides at probability 0.5; 20 % of the first task are positive"
    for options, there, noted in (
        ([], told, True),
        (["--decision", "accuracy"], told, False),
        (["--decision", "balanced"], "decides at the base rate; 20 %", False),
        (["--quiet"], "", False),
    ):
        said = command(*typed, *options)
        assert said.code == 0, said.err
        assert there in said.err
        assert ("% of the first task" in said.err) == bool(there)
        assert ("with --decision balanced these models do, too" in said.err) == noted


def test_alternatives_may_still_be_named_as_peers(command, tmp_path):
    typed = ["synthetic", "--set", "tasks=1", "--set", "rows=60", "--out", tmp_path, "--json"]
    old = command("peers", *typed, "--peers", "sgd")
    new = command("peers", *typed, "--alternatives", "sgd")
    assert old.code == new.code == 0
    assert json.loads(old.out) == json.loads(new.out)


def test_the_command_refuses_a_peer_named_twice(command):
    said = command("peers", "synthetic", "--peers", "sgd,sgd")
    assert said.code == 2
    assert "expected each alternative once, got sgd,sgd" in said.err
