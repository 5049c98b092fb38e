"""From the first table to next month's rows, as one story: no number is lost and none doubled."""

import csv
import io
import json
from collections import Counter
from datetime import date, timedelta

import numpy as np
import pytest

import tiny

TASK = 150  # rows
FIRST, REPEATED, NEW = 4 * TASK, 40, 2 * TASK + 30  # the new rows fill two tasks, and 30 wait
RACES = ("white", "black", "asian", "hispanic", "other", "")


def loans(start, rows):
    """Loans number `start` on: 13 % default; dates, ids, gaps, free text, careless spelling."""
    random = np.random.default_rng(start)
    table = []
    for number in range(start, start + rows):
        sex, debt = random.choice(["F", "M", "m"], p=[0.5, 0.4, 0.1]), random.random()
        race = random.choice(RACES, p=[0.45, 0.2, 0.12, 0.12, 0.06, 0.05])
        bad = random.random() < 0.02 + 0.16 * debt + 0.06 * (sex == "F")
        day = date(2024, 1, 1) + timedelta(days=number // 5)
        pay = "" if random.random() < 0.05 else f"{random.lognormal(10, 0.5):.0f}"
        table.append(
            {
                "loan": f"L{number:06d}",
                "issued": day.isoformat(),
                "sex": sex,
                "race": race,
                "pay": pay,
                "debt": f"{debt:.3f}",
                "purpose": random.choice(["car", "Car", "home", "study"]),
                "note": f"called on {day}: will send {random.integers(10**6)} by post, she says",
                "default": "yes" if bad else "no",
            }
        )
    return table


def write(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def require_every_row_once(folder, rows):
    """The journal, the summary and the report have these rows: each once, none else."""
    rounds = tiny.records(folder)
    assert [line["round"] for line in rounds] == list(range(1, len(rows) // TASK + 1))
    periods = [day for line in rounds for day in line["period"]]
    assert periods == sorted(periods)
    assert (periods[0], periods[-1]) == (rows[0]["issued"], rows[-1]["issued"])
    expected = {
        "sex": Counter((row["sex"].upper(), row["default"]) for row in rows),
        "race": Counter((row["race"] or "not known", row["default"]) for row in rows),
    }
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["rounds"] == len(rounds)
    assert summary["left_out"]["rows"] == 0
    for attribute, count in expected.items():
        journalled = Counter()
        for line in rounds:
            assert line["rows"] == TASK
            for group, cell in line["counts"][attribute].items():
                assert cell["rows"] == cell["y1_rows"] + cell["y0_rows"]
                journalled[group, "yes"] += cell["y1_rows"]
                journalled[group, "no"] += cell["y0_rows"]
        assert +journalled == count
        pooled = summary["overall"]["pooled"]["counts"][attribute]
        assert sum(cell["rows"] for cell in pooled.values()) == len(rows)
        for group, cell in pooled.items():
            assert (cell["y1_rows"], cell["y0_rows"]) == (count[group, "yes"], count[group, "no"])
            decided = [line["counts"][attribute].get(group, {}) for line in rounds]
            for figure in ("predicted_positive", "true_positive", "false_positive"):
                assert cell[figure] == sum(one.get(figure, 0) for one in decided)


@pytest.mark.filterwarnings("error")
def test_a_first_table_a_report_new_rows_decisions_a_second_report_and_back(command, tmp_path):
    old, new = loans(0, FIRST), loans(FIRST, NEW)
    folder, page = tmp_path / "loans", tmp_path / "loans" / "report.html"
    table = write(tmp_path / "loans.csv", old)

    said = command(
        *("run", table, "--label", "default", "--sensitive", "sex,race", "--favourable", "no"),
        *("--time", "issued", "--tasks", 4, "--seeds", 1, "--out", folder),
    )
    assert said.code == 0, said.err
    assert said.err.startswith("decides at the base rate")
    for words in ("an id or a name", "free text: note", "no value", "in case only are one: 'm'"):
        assert words in said.err
    require_every_row_once(folder, old)
    first = {name: (folder / name).read_bytes() for name in ("rounds.jsonl", "summary.json")}
    first_page = page.read_text()
    assert f"{FIRST}" in first_page
    assert "2024-01-01" in first_page

    # New rows, after some that she has sent before.
    april = write(tmp_path / "april.csv", [*old[-REPEATED:], *new])
    said = command("learn", folder, april, "--id", "loan")
    assert said.code == 0, said.err
    assert f"{REPEATED} were given before and skipped; 300 learned now in 2" in said.err
    assert "30 wait for the next file" in said.err
    assert "round 6/6" in said.err
    require_every_row_once(folder, [*old, *new[:300]])
    assert (folder / "rounds.jsonl").read_bytes().startswith(first["rounds.jsonl"])
    after = (folder / "rounds.jsonl").read_bytes()
    assert "330 were given before" in command("learn", folder, write(april, new)).err
    assert (folder / "rounds.jsonl").read_bytes() == after

    asked = [{**row, "default": ""} for row in loans(FIRST + NEW, 20)]
    said = command(
        *("predict", folder, write(tmp_path / "may.csv", asked), "--keep", "loan", "--explain")
    )
    assert said.code == 0, said.err
    decisions = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["loan"] for row in decisions] == [row["loan"] for row in asked]
    for row in decisions:
        needed, moved = (
            float(row["threshold"]),
            [float(row[f"moved_by:{a}"]) for a in ("sex", "race")],
        )
        assert needed == pytest.approx(float(row["without_fairness"]) + sum(moved), abs=1e-4)
        assert (row["prediction"] == "yes") == (float(row["score"]) > needed)
        assert row["because"]

    assert command("report", folder, "--out", tmp_path / "second.html").code == 0
    second_page = (tmp_path / "second.html").read_text()
    assert second_page != first_page
    assert new[299]["issued"] in second_page

    assert command("learn", folder, "--undo").code == 0
    for name, content in first.items():
        assert (folder / name).read_bytes() == content
    require_every_row_once(folder, old)
    # What was taken back is not known any more.
    said = command("learn", folder, write(april, new))
    assert "0 were given before and skipped; 300 learned now" in said.err
    require_every_row_once(folder, [*old, *new[:300]])
