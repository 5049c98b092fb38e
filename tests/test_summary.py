"""The summary is what one gets by hand from the rounds."""

import json
import random

import numpy as np
import pytest

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Attribute
from fairsaoml.evaluate.metrics import FIGURES, count, counts_to_json, figures
from fairsaoml.evaluate.summary import summarise

ATTRIBUTES = (
    Attribute(name="sex", levels=("f", "m")),
    Attribute(name="race", levels=("a", "b", "c")),
)
SEEDS = (3, 4, 5)
DOMAINS = ["north"] * 14 + ["south"] * 4 + ["north"] * 12


def scored(generator, rows):
    """Rows with their decisions, as (y, prediction, group)."""
    y = generator.integers(0, 2, rows)
    prediction = np.where(generator.random(rows) < 0.8, y, 1 - y)
    group = np.stack([generator.integers(0, 2, rows), generator.integers(0, 3, rows)], axis=1)
    return y, prediction, group


def journalled(y, prediction, group):
    counts = count(y, prediction, group, ATTRIBUTES)
    return {**figures(counts), "counts": counts_to_json(counts)}


@pytest.fixture(scope="module")
def rows():
    """(round, seed) -> rows; the small rounds leave some ratios undefined."""
    generator = np.random.default_rng(0)
    return {
        (number, seed): scored(generator, 4 if number % 5 == 0 else 50)
        for number in range(1, len(DOMAINS) + 1)
        for seed in SEEDS
    }


@pytest.fixture(scope="module")
def lines(rows):
    return [
        {"round": number, "seed": seed, "domain": DOMAINS[number - 1], **journalled(*of_round)}
        for (number, seed), of_round in rows.items()
    ]


def summary_of(lines, **options):
    return summarise(lines, learner="fairsaoml-decoupled", stream="made-up", seeds=SEEDS, **options)


def blocks(summary):
    """Every block with the rounds it must speak of."""
    yield summary["overall"], range(1, 31)
    yield summary["last"], range(21, 31)
    stretches = [range(1, 15), range(15, 19), range(19, 31)]
    for domain, stretch in zip(summary["domains"], stretches, strict=True):
        yield domain, stretch
        yield domain["last"], stretch[-10:]


def test_a_summary_says_of_what_it_is_one(lines):
    summary = summary_of(lines)
    assert summary["learner"] == "fairsaoml-decoupled"
    assert summary["stream"] == "made-up"
    assert summary["seeds"] == [3, 4, 5]
    assert summary["rounds"] == 30
    assert [domain["name"] for domain in summary["domains"]] == ["north", "south", "north"]


def test_pooled_figures_are_those_of_all_the_rows_taken_together(lines, rows):
    for block, numbers in blocks(summary_of(lines)):
        together = [rows[number, seed] for number in numbers for seed in SEEDS]
        y, prediction, group = (np.concatenate(parts) for parts in zip(*together, strict=True))
        expected = journalled(y, prediction, group)
        assert block["pooled"] == expected
        assert block["pooled"]["accuracy"] == pytest.approx(np.mean(y == prediction))


def test_mean_and_spread_are_over_rounds_first_and_then_over_seeds(lines):
    for block, numbers in blocks(summary_of(lines)):
        assert block["rounds"] == [numbers[0], numbers[-1]]
        for name in FIGURES:
            table = np.array(
                [
                    [line[name] for line in lines if line["seed"] == s and line["round"] in numbers]
                    for s in SEEDS
                ],
                dtype=float,  # None becomes NaN
            )
            of_seeds = np.nanmean(table, axis=1)
            assert block["mean"][name] == pytest.approx(of_seeds.mean())
            assert block["spread"][name] == pytest.approx(of_seeds.std(ddof=1))
            assert block["skipped"].get(name, 0) == np.isnan(table).sum()


def test_the_small_rounds_of_this_test_do_leave_something_to_skip(lines):
    skipped = summary_of(lines)["overall"]["skipped"]
    assert skipped["dp_ratio"] > 0
    assert "accuracy" not in skipped


def test_the_order_of_the_lines_does_not_matter(lines):
    shuffled = random.Random(0).sample(lines, len(lines))
    assert summary_of(iter(shuffled)) == summary_of(lines)


def test_what_is_known_to_be_achievable_stands_with_its_domain_only(lines):
    best = {"south": {"accuracy": 0.9, "fair_accuracy": 0.85}, "elsewhere": {"accuracy": 1.0}}
    domains = summary_of(lines, best=best)["domains"]
    assert domains[1]["best"] == best["south"]
    assert "best" not in domains[0]
    assert not any("best" in domain for domain in summary_of(lines)["domains"])


def test_a_figure_undefined_in_every_round_is_null_with_its_reason_in_the_pool():
    generator = np.random.default_rng(1)
    lines = []
    for number in (1, 2):
        y, _, group = scored(generator, 60)
        decided = journalled(y, np.zeros_like(y), group)
        lines.append({"round": number, "seed": 3, "domain": "", **decided})
    summary = summary_of(lines)
    block = summary["overall"]
    assert block["mean"]["dp_ratio"] is None
    assert block["skipped"]["dp_ratio"] == 2
    assert block["pooled"]["dp_ratio"] is None
    assert any(reason.startswith("dp_ratio of sex: 0/0") for reason in block["pooled"]["undefined"])
    # One seed has no spread; that is not a spread of zero.
    assert block["spread"]["accuracy"] is None
    json.dumps(summary, allow_nan=False)


def test_adapted_figures_are_summed_up_in_the_same_way(lines):
    plain = summary_of(lines)["last"]
    swapped = [{**line, "adapted": {name: line[name] for name in FIGURES}} for line in lines]
    without_counts = summary_of(swapped)["last"]["adapted"]
    assert without_counts == {key: plain[key] for key in ("mean", "spread", "skipped")}
    for line in swapped:
        line["adapted"]["counts"] = line["counts"]
    assert summary_of(swapped)["last"]["adapted"]["pooled"] == plain["pooled"]
    assert "adapted" not in plain


def test_a_run_without_rounds_has_no_summary():
    with pytest.raises(DataError, match=r"at least one round .* got none; give"):
        summary_of([])
