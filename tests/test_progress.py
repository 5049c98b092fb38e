"""What is shown while runs go on: one or many, on a terminal or not."""

import sys

import pytest

from fairsaoml.cli.progress import Completion, progress
from fairsaoml.runs.events import Event

FIGURES = {"accuracy": 0.5, "dp_ratio": None, "eo_ratio": 0.25}


def of_round(job, round, length=4):
    return Event("round", job, round=round, length=length, domain="here", figures=FIGURES)


def show(names, events, seeds=2, terminal=None):
    """Show events; on a terminal if `terminal` is the monkeypatch to make one with."""
    if terminal:
        terminal.setattr(sys.stderr, "isatty", lambda: True)
    with progress(names, seeds, quiet=False) as on_event:
        for event in events:
            on_event(event)


def test_the_time_left_is_that_of_runs_still_to_be_done(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("fairsaoml.cli.progress.time.monotonic", lambda: now[0])
    completion = Completion(4)
    completion.note(Event("kept", 0))
    assert completion.seconds_left is None
    now[0] += 30
    completion.note(Event("finished", 1))
    completion.note(of_round(2, 5, length=10))
    # One run and a half in 30 s, one and a half are left.
    assert completion.seconds_left == pytest.approx(30)
    assert completion.finished == 2
    assert completion.words == "2/4 runs, about 30 s left"


def test_a_terminal_shows_all_runs_and_those_going_on(monkeypatch, capsys):
    events = [Event("started", 0), of_round(0, 3), Event("lost", 0), Event("started", 0)]
    events += [Event("finished", 0), Event("kept", 1)]
    show(["aod", "cbce"], events, terminal=monkeypatch)
    said = capsys.readouterr().err
    assert "all runs" in said
    assert "2/2 runs" in said


def test_a_terminal_has_a_bar_for_each_of_a_few_runs(monkeypatch, capsys):
    show(["aod", "cbce"], [Event("started", 1), of_round(1, 3)], terminal=monkeypatch)
    said = capsys.readouterr().err
    assert "aod" in said
    assert "round 3/4 here" in said
    assert "2 seeds each" in said


def test_a_terminal_has_bars_for_those_of_many_runs_that_are_going_on(monkeypatch, capsys):
    names = [f"run-{number}" for number in range(40)]
    show(names, [Event("started", 7), of_round(7, 1)], terminal=monkeypatch)
    said = capsys.readouterr().err
    assert "run-7" in said
    assert "run-8" not in said


def test_plain_lines_say_which_run_how_far_and_how_long_still(capsys):
    rounds = [of_round(0, number, length=90) for number in range(1, 91)]
    events = [Event("started", 0), *rounds, Event("lost", 1), Event("finished", 0)]
    show(["aod", "cbce"], events, seeds=1)
    first, *lines, lost, finished = capsys.readouterr().err.splitlines()
    assert first == "aod (1/2, 1 seed)"
    assert lines[0] == "aod round 1/90 here: accuracy 0.500 DP - EO 0.250"
    assert lines[-1].startswith("aod round 90/90 here")
    assert len(lines) == 10
    assert lost == "cbce (2/2): its worker died; another one continues"
    assert finished.startswith("aod finished: 1/2 runs, about ")


def test_many_runs_have_few_lines_each(capsys):
    names = [f"run-{number}" for number in range(40)]
    show(names, [of_round(3, number, length=90) for number in range(1, 91)])
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_quiet_shows_nothing(capsys):
    with progress(["aod"], 1, quiet=True) as on_event:
        on_event(of_round(0, 1))
    assert capsys.readouterr().err == ""
