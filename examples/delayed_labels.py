"""Decide today, learn when the outcome is known: labels come late, out of order, or never.

The service is stopped halfway, as by a kill. Started again by the same lines, it goes on from its
journal, though the model that was saved is older.
"""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fairsaoml import AdaptiveFairClassifier, DelayedLabels, StreamingMetric


class World:
    """People who come, and whose outcomes are known after one to six days, or never."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.today = 0
        self.known: dict[int, list[tuple]] = defaultdict(list)  # day -> (id, outcome)

    def people(self, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, outcomes and a sensitive feature."""
        sex = self.random.choice(["f", "m"], rows)
        merit, luck, noise = self.random.normal(size=(3, rows))
        outcome = np.where(merit + 0.3 * luck > 0, "repaid", "defaulted")
        return np.stack([merit, merit + (sex == "m") + 0.3 * noise], axis=1), outcome, sex

    def find_out(self, ids: list, outcome: np.ndarray) -> None:
        """Some day."""
        for id, value in zip(ids, outcome.tolist(), strict=True):
            if self.random.random() < 0.9:
                self.known[self.today + int(self.random.integers(1, 7))].append((id, value))


def serve(world: World, folder: Path, days: int) -> None:
    """Decide about twenty people a day; a task is a hundred of them."""
    model = AdaptiveFairClassifier.load(folder / "model")
    metric = StreamingMetric("selection_rate", window=3, pos_label="repaid")
    with DelayedLabels(
        model,
        task_rows=100,
        wait_seconds=4,  # days, by this clock
        clock=lambda: world.today,
        on_close=lambda task: metric.update(
            task.y, task.prediction, sensitive_features=task.sensitive_features
        ),
        journal=folder / "events.sqlite",
    ) as delayed:
        print(f"started with {model.n_rounds_} rounds, {len(delayed.waiting)} labels to come")
        for _ in range(days):
            world.today += 1
            if known := world.known.pop(world.today, []):
                delayed.label([id for id, _ in known], [outcome for _, outcome in known])
            X, outcome, sex = world.people(20)
            world.find_out(delayed.issue(X, sensitive_features=sex).ids, outcome)
        gap = metric.difference_interval()
        print(f"day {world.today}: {delayed.tally}")
        print(f"gap of the last tasks {gap.value:.2f}, between {gap.low:.2f} and {gap.high:.2f}")


def main() -> None:
    """Thirty days by two processes, as it were."""
    world = World()
    model = AdaptiveFairClassifier(constraints="dp")
    X, outcome, sex = world.people(100)
    model.partial_fit(X, outcome, sensitive_features=sex)  # what was known before the first day
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        serve(world, Path(folder), days=15)
        serve(world, Path(folder), days=15)


if __name__ == "__main__":
    main()
