"""A round is traced once: later processes find it, other code or settings do not."""

import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core.types import Batch
from fairsaoml.evaluate import traced
from fairsaoml.evaluate.traced import TracedOnce
from fairsaoml.learners import registry
from fairsaoml.streams.catalog import open_stream

STATE = np.zeros(3, np.float32)


def batch_of(rows):
    return Batch(
        x=np.ones((rows, 2), np.float32),
        y=np.arange(rows, dtype=np.float32),
        group=np.zeros((rows, 1), np.int32),
        weight=np.ones(rows, np.float32),
    )


class Counting:
    """A round that counts how often it is traced."""

    def __init__(self):
        self.traces = 0

    def new(self, made_of="one"):
        """As in a new process: nothing but the disk is remembered."""

        def round(state, batch):
            self.traces += 1
            return state + batch.y.sum(), batch

        return TracedOnce(round, made_of, returned=())

    def run(self, made_of="one", rows=4):
        program = self.new(made_of)
        return program, program(STATE, batch_of(rows))


@pytest.fixture
def counting(tmp_path, monkeypatch):
    monkeypatch.setattr(traced, "cache_folder", lambda: tmp_path)
    return Counting()


def test_a_new_process_does_not_trace_again_and_computes_the_same(counting):
    first, second = (counting.run()[1] for _ in range(2))
    assert counting.traces == 1
    np.testing.assert_array_equal(first[0], STATE + 6)
    np.testing.assert_array_equal(first[0], second[0])
    assert isinstance(second[1], Batch)


def test_shapes_are_told_without_compiling(counting):
    program = counting.new()
    state, batch = program.shapes(STATE, batch_of(5))
    assert (state.shape, batch.x.shape, program.programs) == ((3,), (5, 2), {})


def test_other_settings_shapes_and_code_are_traced_anew(counting, monkeypatch):
    counting.run()
    counting.run(made_of="two")
    counting.run(rows=5)
    monkeypatch.setattr(traced, "_code", lambda: "changed")
    counting.run()
    assert counting.traces == 4


def test_a_damaged_trace_is_made_anew(counting, tmp_path):
    counting.run()
    (kept,) = (tmp_path / "traced").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert counting.run()[1][0].tolist() == [6, 6, 6]
    counting.run()
    assert counting.traces == 2


def test_what_cannot_be_written_is_traced_again(counting, tmp_path):
    (tmp_path / "traced").write_text("a file where the folder should be")
    counting.run()
    counting.run()
    assert counting.traces == 2


def test_nothing_is_kept_of_a_learner_that_is_not_known_to_be_ours(counting, tmp_path):
    counting.run(made_of=None)
    assert list(tmp_path.iterdir()) == []


def test_a_learner_says_what_it_is_made_of_unless_other_packages_take_part(monkeypatch):
    schema = open_stream("synthetic").schema
    name = registry.DEFAULT
    asked = [registry.configure(name, {"ratio": ratio}) for ratio in (0.8, 0.9)]
    first, second = (registry.build(name, config, schema).made_of for config in asked)
    assert None not in (first, second)
    assert first != second
    assert registry.build(name, asked[0], schema).made_of == first
    monkeypatch.setattr(registry.LEARNERS, "has_plugins", lambda: True)
    assert registry.build(name, asked[0], schema).made_of is None


def test_a_program_is_compiled_once_though_its_state_comes_from_itself(counting):
    program, (state, _) = counting.run()
    program(jnp.asarray(state), batch_of(4))
    assert len(program.programs) == 1
