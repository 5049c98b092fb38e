"""Watch a deployed rule for fairness while people change: Fairlearn's numbers, batch by batch.

The rule was fair once. From the tenth day on, one group's scores drift down.
"""

import numpy as np

from fairsaoml import StreamingMetric

DAYS, PEOPLE, DRIFT_FROM = 20, 120, 10


def a_day(random: np.random.Generator, day: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, the rule's decisions, and who it decided about."""
    sex = random.choice(["f", "m"], PEOPLE, p=[0.3, 0.7])
    merit = random.normal(size=PEOPLE)
    score = merit - 0.15 * max(0, day - DRIFT_FROM) * (sex == "f")
    outcome = (merit + random.normal(scale=0.5, size=PEOPLE) > 0).astype(int)
    return outcome, (score > 0).astype(int), sex


def main() -> None:
    """The last five days against all of them."""
    random = np.random.default_rng(0)
    names = ["accuracy", "selection_rate", "true_positive_rate"]
    ever, lately = StreamingMetric(names), StreamingMetric(names, window=5)
    for day in range(1, DAYS + 1):
        outcome, decision, sex = a_day(random, day)
        for metric in (ever, lately):
            metric.update(outcome, decision, sensitive_features={"sex": sex})
        gap = lately.difference_interval("selection_rate")
        sure = "unfair" if gap.low > 0.05 else "not sure"
        print(f"day {day:2}: gap {gap.value:.2f}, {gap.low:.2f} to {gap.high:.2f}: {sure}")
    print(lately.by_group.round(3))
    print("ratio, last five days:", lately.ratio().round(3).to_dict())
    # A day that was reported by mistake goes out again.
    ever.revert(outcome, decision, sensitive_features={"sex": sex})
    print("ratio, all days but the last:", ever.ratio().round(3).to_dict())


if __name__ == "__main__":
    main()
