"""A small service that predicts, gets labels late and out of order, and may be killed anywhere.

    python delayed_service.py FOLDER [MOMENT NUMBER]

dies by SIGKILL at the NUMBER-th MOMENT: `statement` of the journal's store, `learning` about to
begin, `learned` but not saved, `saved`. Started again, it goes on; it prints what it has done when
all is.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

from fairsaoml.files import read_json, write_json
from fairsaoml.serve.delayed import DelayedLabels

STEPS = 60
SAVE_EVERY = 3  # rounds, so that a model is often behind its journal
SETTINGS = {
    "task_rows": 7,
    "task_seconds": 9.0,
    "wait_seconds": 8.0,
    "max_rows": 30,
    "unknown": "count",
}


class Running:
    """A model whose every prediction tells all that it has learned, in order."""

    def __init__(self, n_rounds_=0, state=1):
        self.n_rounds_, self.state = n_rounds_, state

    def predict(self, X):
        return [(self.state + int(row[0])) % 2 for row in X]

    def predict_proba(self, X):
        return [[0.5, 0.1 * (self.state % 7)] for _ in X]

    def partial_fit(self, X, y, sensitive_features=None):
        for row, label, group in zip(X, y, sensitive_features, strict=True):
            self.state = (31 * self.state + 7 * int(row[0]) + 3 * int(label) + ord(group)) % 100_003
        self.n_rounds_ += 1

    def save(self, path):
        write_json(path, vars(self))

    @classmethod
    def load(cls, path):
        return cls(**read_json(path)) if path.exists() else cls()


def commands():
    """What the world does: rows to predict, and labels after any delay, twice, or never."""
    draw = random.Random(0)
    calendar = [[] for _ in range(STEPS)]
    issued = 0
    for step in range(STEPS):
        rows = [[draw.randrange(100), draw.random()] for _ in range(draw.randrange(1, 5))]
        ids = [f"row {issued + place}" for place in range(len(rows))]
        issued += len(rows)
        calendar[step].append(("issue", ids, rows, [draw.choice("ab") for _ in rows]))
        for id in ids:
            for _ in range(draw.choice([0, *[1] * 12, 2])):
                when = step + draw.randrange(16)
                if when < STEPS:
                    calendar[when].append(("label", [id], [draw.randrange(2)], None))
    return [(step, *command) for step, day in enumerate(calendar) for command in day]


class Death:
    """SIGKILL at a moment, in the middle of whatever is being done."""

    def __init__(self, moment="", number=0):
        self.moment, self.left = moment, number

    def come(self, moment):
        self.left -= moment == self.moment
        if moment == self.moment and self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """A model that may be killed before it has learned, and before that is saved."""

    def __init__(self, model, death):
        self._model, self._death = model, death

    def partial_fit(self, X, y, sensitive_features=None):
        self._death.come("learning")
        self._model.partial_fit(X, y, sensitive_features)
        self._death.come("learned")

    def __getattr__(self, name):
        return getattr(self._model, name)


class Service:
    """The loop that anyone would write around DelayedLabels."""

    def __init__(self, folder, death=None):
        self.folder, self.death, self.now = Path(folder), death or Death(), 0.0
        self.scores = []
        self.model = Running.load(self.folder / "model.json")
        self.delayed = DelayedLabels(
            Mortal(self.model, self.death),
            clock=lambda: self.now,
            on_close=self.score,
            journal=self.folder / "events.sqlite",
            **SETTINGS,
        )
        trace = self.delayed._tasks.set_trace_callback
        trace(lambda statement: self.death.come("statement"))

    def score(self, task):
        hits = int((task.prediction == task.y).sum())
        self.scores.append([task.number, task.round, task.ids, hits, task.late, task.unlabelled])

    def run(self):
        with self.delayed as delayed:
            tally = delayed.tally
            done = tally.issued + tally.labelled + tally.unknown + tally.repeated
            for step, what, ids, content, groups in commands():
                if done > 0:  # before it was killed
                    done -= len(ids)
                    continue
                self.now = float(step)
                if what == "issue":
                    delayed.issue(content, sensitive_features=groups, ids=ids)
                else:
                    delayed.label(ids, content)
                self.save()
            delayed.close_all()
        return {
            "tally": delayed.tally._asdict(),
            "scores": self.scores,
            "rounds": self.model.n_rounds_,
            "state": self.model.state,
        }

    def save(self):
        if self.model.n_rounds_ and self.model.n_rounds_ % SAVE_EVERY == 0:
            self.model.save(self.folder / "model.json")
            self.death.come("saved")


if __name__ == "__main__":
    moment = (sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else ()
    print(json.dumps(Service(sys.argv[1], Death(*moment)).run()))
