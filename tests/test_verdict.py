"""The verdict's laws: it judges what was asked, and says no more than the rows can tell."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ncx2

from fairsaoml.evaluate.confidence import Share, typical_ratio
from fairsaoml.evaluate.verdict import ANSWERS, Asked, averaged_out, judge, not_judged

ORDER = list(ANSWERS)  # the worst first


def counts(rows: int, selected: float, of_y1: float = 0.0, of_y0: float = 0.0) -> dict:
    """Half of the rows have y = 1; the same share of both is selected unless told otherwise."""
    half = rows // 2
    hit, alarm = round(half * (of_y1 or selected)), round(half * (of_y0 or selected))
    return {
        "rows": 2 * half,
        "predicted_positive": hit + alarm,
        "y1_rows": half,
        "true_positive": hit,
        "y0_rows": half,
        "false_positive": alarm,
    }


def rounds(*groups: dict, number: int = 20, seeds: int = 1, start: int = 1) -> list[dict]:
    """So many rounds; the round's number picks one of `groups`, ten rounds each in turn."""
    return [
        {
            "round": r,
            "seed": seed,
            "domain": "",
            "counts": {"sex": groups[(r - 1) // 10 % len(groups)]},
        }
        for r in range(start, start + number)
        for seed in range(seeds)
    ]


def of(verdict: dict, notion: str = "eo") -> dict:
    return verdict["attributes"]["sex"]["notions"][notion]


EO = Asked(notions=("eo",), ratio=0.9)


def test_the_headline_speaks_of_the_notion_that_was_asked_for() -> None:
    """Equal rates given the label, unequal selection because the base rates differ."""
    f = {**counts(1000, 0.5, 0.8, 0.2)}
    m = {"rows": 1000, "predicted_positive": 680, "y1_rows": 800, "true_positive": 640}
    m |= {"y0_rows": 200, "false_positive": 40}
    lines = rounds({"f": f, "m": m})
    asked_eo, asked_dp = judge(lines, EO), judge(lines, EO._replace(notions=("dp",)))
    assert (asked_eo["answer"], asked_dp["answer"]) == ("fair", "not fair")
    assert asked_eo["sentence"] == "Fair by sex"
    assert "0.90 was asked for" in asked_eo["attributes"]["sex"]["sentence"]
    assert of(asked_eo, "dp")["answer"] == "not fair"  # shown, as information
    assert not of(asked_eo, "dp")["asked"]


def test_a_ratio_that_nobody_asked_for_is_the_80_percent_rule() -> None:
    lines = rounds({"f": counts(4000, 0.43), "m": counts(4000, 0.5)})
    assert judge(lines, Asked(notions=("dp",)))["answer"] == "fair"
    assert judge(lines, Asked(notions=("dp",), ratio=0.95))["answer"] == "not fair"
    nothing = judge(lines, Asked())
    assert nothing["answer"] == "fair"
    assert "the 80 % rule is 0.80" in nothing["attributes"]["sex"]["sentence"]


@pytest.mark.parametrize(
    ("rows", "part", "answer"),
    [(3000, 0.895, "fair"), (20, 0.895, "too few"), (3000, 0.84, "not fair")],
)
def test_a_ratio_at_what_was_asked_within_its_error_is_fair(
    rows: int, part: float, answer: str
) -> None:
    """Unless the rows are so few that the 80 % rule may be missed too."""
    verdict = judge(rounds({"f": counts(rows, 0.5 * part), "m": counts(rows, 0.5)}), EO)
    assert verdict["answer"] == answer
    said = verdict["attributes"]["sex"]["sentence"]
    assert ("at what was asked within its error" in said) == (answer == "fair")


@given(rate=st.floats(0.05, 0.95), rows=st.sampled_from([40, 400, 4000]))
def test_a_larger_gap_is_never_judged_better(rate: float, rows: int) -> None:
    answers = [
        judge(rounds({"f": counts(rows, rate * part), "m": counts(rows, rate)}), EO)["answer"]
        for part in (1.0, 0.95, 0.85, 0.7, 0.4, 0.1)
    ]
    places = [ORDER.index(answer) for answer in answers]
    assert places == sorted(places, reverse=True)


@pytest.mark.parametrize(("rows", "answer"), [(20, "too few"), (2000, "fair")])
def test_an_interval_across_the_line_is_not_enough_rows(rows: int, answer: str) -> None:
    verdict = judge(rounds({"f": counts(rows, 0.5), "m": counts(rows, 0.5)}), EO)
    assert verdict["answer"] == answer
    entry = of(verdict)
    assert (entry["low"] < 0.8) == (answer == "too few")


def test_opposite_gaps_do_not_cancel() -> None:
    low, high = counts(2000, 0.4), counts(2000, 0.6)
    lines = rounds({"f": low, "m": high}, {"f": high, "m": low}, number=40)
    for seen in (lines, lines[20:]):
        entry = of(judge(seen, EO))
        assert entry["answer"] == "not fair"
        assert entry["ratio"] == pytest.approx(2 / 3, abs=0.02)


def test_opposite_gaps_within_ten_rounds_are_said() -> None:
    """Three rounds of .7 one way and seven of .87 the other: together they are equal."""
    one = {"f": counts(1000, 0.35), "m": counts(1000, 0.5)}
    other = {"f": counts(1000, 0.46), "m": counts(1000, 0.4)}
    lines = [*rounds(one, number=13), *rounds(other, number=7, start=14)]
    verdict = judge(lines, EO)
    entry = of(verdict)
    assert (entry["answer"], entry["rounds"]) == ("fair", [11, 20])
    assert averaged_out(entry, EO.ratio)
    assert entry["by_round"]["ratio"] == pytest.approx(0.81, abs=0.01)
    assert ", but 0.81 (0.7" in verdict["attributes"]["sex"]["sentence"]
    assert "round by round: gaps come and go" in verdict["attributes"]["sex"]["sentence"]
    steady = judge(rounds({"f": counts(1000, 0.46), "m": counts(1000, 0.5)}), EO)
    assert "round by round" not in steady["attributes"]["sex"]["sentence"]


@pytest.mark.parametrize("rows", [20, 100, 1000])
def test_chance_is_no_gap_that_comes_and_goes(rows: int) -> None:
    """Treated alike in every round: of 60 such runs hardly any is said to be otherwise."""
    random, said = np.random.default_rng(0), 0
    for _ in range(60):
        lines = []
        for number in range(1, 21):
            groups = {}
            for name in "fm":
                hit, alarm = (int(random.binomial(rows // 2, rate)) for rate in (0.6, 0.3))
                groups[name] = counts(rows, 0.5) | {
                    "predicted_positive": hit + alarm,
                    "true_positive": hit,
                    "false_positive": alarm,
                }
            lines += rounds(groups, number=1, start=number)
        said += averaged_out(of(judge(lines, EO)), EO.ratio)
    assert said <= 3


def test_the_same_rows_under_several_seeds_are_not_more_rows() -> None:
    groups = {"f": counts(100, 0.45), "m": counts(100, 0.5)}
    assert judge(rounds(groups), EO) == judge(rounds(groups, seeds=5), EO)


def test_a_small_group_is_named_with_its_interval_and_turns_nothing() -> None:
    groups = {"f": counts(2000, 0.5), "m": counts(2000, 0.5)}
    few = judge(rounds({**groups, "x": counts(4, 0.5)}), EO)
    assert few["answer"] == "fair"
    left_out = of(few)["left_out"]["x"]
    assert left_out["rows"] == 72  # the first tenth of the rounds is not judged
    assert left_out["low"] < 0.8 < left_out["high"]
    assert few["attributes"]["sex"]["sentence"].endswith(" Not judged, for too few rows: x.")
    assert not_judged(few) == ["x"]
    # As few of them, but nobody is ever selected: that can be told.
    assert judge(rounds({**groups, "x": counts(10, 1e-9)}), EO)["answer"] == "not fair"


def test_rows_of_an_unknown_group_are_reported_and_not_judged() -> None:
    groups = {"f": counts(2000, 0.5), "m": counts(2000, 0.5)}
    verdict = judge(rounds({**groups, "unseen": counts(2000, 0.1)}), EO)
    assert verdict["answer"] == "fair"
    assert verdict["attributes"]["sex"]["unknown_rows"] == 40_000


def test_windows_reach_back_only_as_far_as_the_rows_need() -> None:
    """The world changed: what is judged is the present, where there are rows enough for it."""
    before, after = {"f": counts(4000, 0.3)}, {"f": counts(4000, 0.5)}
    lines = rounds(before | {"m": counts(4000, 0.5)}, after | {"m": counts(4000, 0.5)}, number=20)
    entry = of(judge(lines, EO))
    assert (entry["answer"], entry["rounds"], entry["since"]) == ("fair", [11, 20], 11)
    backwards = [{**line, "round": 21 - line["round"]} for line in lines]
    assert of(judge(backwards, EO))["since"] == 11
    thin = rounds({"f": counts(60, 0.5), "m": counts(60, 0.5)}, number=60)
    assert of(judge(thin, EO))["windows"] > 1


def test_the_sentence_says_which_rounds_it_is_about() -> None:
    groups = {"f": counts(2000, 0.5), "m": counts(2000, 0.5)}
    said = judge(rounds(groups, number=34), EO)["attributes"]["sex"]["sentence"]
    assert said == (
        "Fair by sex: equalized odds is 1.00 (0.97 to 1.00) in rounds 25 to 34; 0.90 was asked for."
    )


def test_what_was_decided_before_anything_was_learned_is_never_judged() -> None:
    """Round 1 treats all alike, and no round after it does; or there is none after it."""
    alike = {"f": counts(4000, 0.5), "m": counts(4000, 0.5)}
    unlike = {"f": counts(4000, 0.2), "m": counts(4000, 0.5)}
    entry = of(judge([*rounds(alike, number=1), *rounds(unlike, number=4, start=2)], EO))
    assert (entry["rounds"], entry["since"], entry["answer"]) == ([2, 5], 2, "not fair")
    assert entry["ratio"] == pytest.approx(0.4)
    for asked in (EO, Asked()):
        verdict = judge(rounds(alike, number=1, seeds=2), asked)
        assert (verdict["answer"], verdict["sentence"]) == (
            "too few",
            "Not enough rows to tell by sex",
        )
        said = verdict["attributes"]["sex"]["sentence"]
        assert "the only round was decided before anything was learned" in said
        assert (of(verdict)["ratio"], of(verdict)["rounds"]) == (None, [])


def test_who_is_worse_off_follows_what_is_good_for_the_person_and_no_figure_does() -> None:
    lines = rounds({"f": counts(2000, 0.3), "m": counts(2000, 0.5)})
    good, bad = judge(lines, EO), judge(lines, EO._replace(favourable=False))
    assert (of(good)["worse_off"], of(bad)["worse_off"]) == ("f", "m")
    for key in ("answer", "ratio", "low", "high", "shares"):
        assert of(good)[key] == of(bad)[key]


def test_nothing_to_compare_is_not_enough_rows() -> None:
    for groups in ({"f": counts(100, 0.5)}, {"f": counts(100, 0.5), "m": counts(0, 0.5)}, {}):
        verdict = judge(rounds(groups), EO)
        assert verdict["answer"] == "too few"


def test_a_rate_that_cannot_be_compared_is_not_taken_for_a_fair_one() -> None:
    """Everybody's label is 1: there is no false positive rate, and equalized odds is half known."""
    six = {"rows": 500, "predicted_positive": 400, "y1_rows": 500, "true_positive": 400}
    lucky = {**six, "y0_rows": 0, "false_positive": 0}
    verdict = judge(rounds({"f": lucky, "m": lucky}), EO)
    assert verdict["answer"] == "too few"
    assert (of(verdict)["ratio"], of(verdict)["low"]) == (1.0, 0.0)
    assert of(verdict)["undefined"] == ["false_positive_rate"]
    said = verdict["attributes"]["sex"]["sentence"]
    assert "its false positive rate undefined for some group" in said
    unlucky = {**lucky, "predicted_positive": 100, "true_positive": 100}
    assert judge(rounds({"f": unlucky, "m": lucky}), EO)["answer"] == "not fair"


def test_what_was_asked_is_read_from_the_settings() -> None:
    spec = {
        "learner": {"config": {"constraints": "dp+eo"}},
        "stream": {"settings": {"favourable": "no"}},
    }
    assert Asked.of(spec) == Asked(notions=("dp", "eo"), ratio=0.8, favourable=False)
    assert Asked.of({"learner": {"config": {"constraints": "none"}}}) == Asked()


@given(
    parts=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=1, max_size=12),
    wholes=st.sampled_from([(40, 60), (54, 330), (400, 600)]),
)
def test_the_typical_ratio_is_never_above_that_of_the_sums(
    parts: list[tuple[int, int]], wholes: tuple[int, int]
) -> None:
    """With as many rows of each group in every window: what one can check by hand."""
    windows = [(Share(a, wholes[0]), Share(b, wholes[1])) for a, b in parts]
    one, other = (sum(a for a, _ in parts), wholes[0]), (sum(b for _, b in parts), wholes[1])
    low_rate, high_rate = sorted(part / whole for part, whole in (one, other))
    ratio, (low, high) = typical_ratio(windows)
    assert ratio is not None
    assert ratio <= low_rate / high_rate + 1e-9
    assert low <= ratio <= high


def test_a_gap_that_every_window_has_is_not_taken_for_chance() -> None:
    """Windows of .91 each: they differ by far less than chance, and are not equal."""
    groups = {"f": counts(22, 6 / 11), "m": counts(1000, 0.6)}
    entry = of(judge(rounds(groups, number=80), EO))
    assert entry["windows"] > 1
    assert entry["ratio"] == pytest.approx(6 / 11 / 0.6)


def test_groups_that_come_at_different_times_do_not_differ() -> None:
    """Both are treated alike in every window, and the sums of their decisions are far apart."""
    windows = [(Share(2, 10), Share(200, 1000)), (Share(600, 1000), Share(6, 10))]
    assert typical_ratio(windows)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("ratios", [(0.9, 0.9), (0.8, 0.8), (0.9, 1 / 0.9), (0.8, 1.25)])
def test_the_typical_ratio_is_near_the_truth_and_its_interval_holds_it(
    ratios: tuple[float, float],
) -> None:
    random = np.random.default_rng(0)
    true, found, held = min(ratios), [], 0
    for _ in range(400):
        windows = [
            (Share(random.binomial(54, 0.6 * ratio), 54), Share(random.binomial(330, 0.6), 330))
            for ratio in (ratios * 3)[:5]
        ]
        ratio, (low, high) = typical_ratio(windows)
        found.append(ratio)
        held += low <= true <= high
    assert np.mean(found) == pytest.approx(true, abs=0.013)  # the noise alone is .0025
    assert held / 400 > 0.93


def test_the_typical_ratio_has_the_interval_of_a_noncentral_chi_square() -> None:
    """An independent inversion: the ends are where the statistic is at a tail of 2.5 %."""
    windows = [(Share(30 + 3 * i, 100), Share(50, 100)) for i in range(5)]
    logs = [math.log(a.rate / b.rate) for a, b in windows]
    precisions = [1 / (1 / a.part - 1 / a.whole + 1 / b.part - 1 / b.whole) for a, b in windows]
    total = sum(w * log**2 for w, log in zip(precisions, logs, strict=True))
    _, (low, high) = typical_ratio(windows)
    for end, tail in ((low, 0.025), (high, 0.975)):
        size = math.log(end) ** 2 * sum(precisions)
        assert ncx2.cdf(total, len(windows), size) == pytest.approx(tail, abs=0.01)
