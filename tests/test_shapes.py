"""Learners keep the shapes that their annotations promise."""

import subprocess
import sys

import shapes
from fairsaoml.learners.registry import BUILTIN


def test_a_round_of_every_learner_keeps_its_shapes_and_a_wrong_one_is_refused():
    command = [sys.executable, shapes.__file__]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["refused", *BUILTIN]


def test_shapes_are_written_down_where_the_mathematics_is():
    rooms = {name.split(".")[1] for name in shapes.annotated()}
    assert rooms >= {"core", "learners", "evaluate"}
