"""What the estimators cost: `python benchmarks/adapter.py [LEARNER ...]`.

Rounds of 1,000 rows, 20 features and two groups, learned side by side by the bare compiled step on
rows that are ready for it (coded, scaled, padded), by `OnlineLearner`, by the estimator for
scikit-learn from raw arrays and from a dataframe, and by River's in one dataframe and row by row.
All play the same rounds in turn. Times are the processor's, all threads together, so that a busy
machine counts little; the median of a round's differences to the bare step is what is added.
"""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd

from benchmarks.cycle import compiled_for
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.estimators import river, sklearn
from fairsaoml.evaluate.seeds import stacked
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner

ROWS, FEATURES, BUCKET = 1000, 20, 1024
WARM, ROUNDS = 3, 60
HORIZON = 64  # as many levels as the rounds have
LEARNERS = ("fairsaoml-decoupled", "fairsaoml", "fair-fml", "fair-glc", "aod")
SCHEMA = Schema(
    features=tuple(f"x{index}" for index in range(FEATURES)),
    attributes=(Attribute("sex", ("f", "m")),),
)


def round_of(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows as a user has them."""
    x = random.normal(size=(ROWS, FEATURES))
    sex = np.where(random.random(ROWS) < 0.4, "f", "m")
    return x, (x[:, 0] + 0.5 * (sex == "m") > 0).astype(int), sex


def players(name: str) -> dict[str, Callable[[Any, Any, Any], Callable[[], Any]]]:
    """Who plays: from a round's rows to the call that is timed."""
    entry = registry.entry(name)
    known = entry.config.__dataclass_fields__
    settings = {"horizon": HORIZON} if "horizon" in known else {}
    learner = registry.build(name, registry.configure(name, settings), SCHEMA)
    key = jax.random.key(0)
    held = {"state": compiled_for(learner, learner.init)(key), "round": 0}
    step = compiled_for(learner, learner.step)

    def bare(x: Any, y: Any, sex: Any) -> Callable[[], Any]:
        task = Task(x.astype(np.float32), y.astype(np.float32), codes(sex))
        batch = jax.tree.map(lambda leaf: leaf[0], stacked([task], BUCKET))

        def learn() -> None:
            held["round"] += 1
            round_key = jax.random.fold_in(key, held["round"])
            found = step(round_key, np.int32(held["round"]), held["state"], batch)
            held["state"] = jax.block_until_ready(found)[0]

        return learn

    def codes(sex: Any) -> np.ndarray:
        return (sex == "m").astype(np.int32)[:, None]

    online = OnlineLearner(SCHEMA, name, settings)
    arrays, frames = (of_learner(sklearn, name)(**settings) for _ in range(2))
    many, one = (of_learner(river, name)(task_size=ROWS, **settings) for _ in range(2))

    def row_by_row(x: Any, y: Any, sex: Any) -> Callable[[], Any]:
        rows = pd.DataFrame(x, columns=SCHEMA.features).to_dict("records")

        def learn() -> None:
            for row, label, group in zip(rows, y, sex, strict=True):
                one.learn_one(row, label, sensitive_features=group)

        return learn

    def framed(learn: Callable) -> Callable:
        def prepare(x: Any, y: Any, sex: Any) -> Callable[[], Any]:
            frame, labels = pd.DataFrame(x, columns=SCHEMA.features), pd.Series(y)
            groups = pd.Series(sex, name="sex")
            return lambda: learn(frame, labels, sensitive_features=groups)

        return prepare

    return {
        "bare step": bare,
        "OnlineLearner": lambda x, y, sex: lambda: online.learn(Task(x, y, codes(sex))),
        "scikit-learn, arrays": lambda x, y, sex: (
            lambda: arrays.partial_fit(x, y, sensitive_features=sex)
        ),
        "scikit-learn, dataframe": framed(frames.partial_fit),
        "River, learn_many": framed(many.learn_many),
        "River, learn_one": row_by_row,
    }


def of_learner(module: Any, name: str) -> type:
    """A module's class for a learner."""
    return next(
        found
        for found in map(module.__dict__.get, module.__all__)
        if getattr(found, "_learner", None) == name
    )


def main(names: list[str]) -> None:
    """One table per learner."""
    warnings.simplefilter("ignore")
    for name in names:
        random = np.random.default_rng(0)
        playing, times = players(name), {}
        for turn in range(WARM + ROUNDS):
            rows = round_of(random)
            for who, prepare in playing.items():
                call = prepare(*rows)
                begun = time.process_time()
                call()
                if turn >= WARM:
                    times.setdefault(who, []).append(time.process_time() - begun)
        first = np.array(times["bare step"])
        print(f"\n{name}: bare step {1e3 * np.median(first):.2f} ms a round\n")
        print("| | added | ratio |\n|---|---|---|")
        for who, found in list(times.items())[1:]:
            added = np.median(np.array(found) - first)
            print(f"| {who} | {1e3 * added:.2f} ms | {1 + added / np.median(first):.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or list(LEARNERS))
