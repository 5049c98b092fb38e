"""The shapes that annotations promise are checked in every test."""

import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

import shapes
from fairsaoml.core.problem import balanced_loss
from fairsaoml.core.types import Batch


def test_a_call_that_breaks_a_shape_is_an_error():
    batch = Batch(x=jnp.ones((2, 1)), y=jnp.ones(2), group=jnp.zeros((2, 0), int), weight=None)
    with pytest.raises(TypeCheckError, match=r"logits"):
        balanced_loss(jnp.ones((2, 2)), batch)


def test_modules_that_write_shapes_down_are_all_checked():
    modules = set(shapes.annotated())
    assert {"fairsaoml.core.fairness", "fairsaoml.learners.live"} <= modules
    assert {name.split(".")[1] for name in modules} >= {"core", "learners", "evaluate"}
