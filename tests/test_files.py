"""A file is whole or not there, and no number in it is NaN."""

import json
import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsaoml import files
from fairsaoml.files import read_json, replacing, tidy, write_bytes, write_json, write_text

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(PLAIN)
def test_tidy_data_is_json_without_nan_and_tidying_it_again_changes_nothing(value):
    once = tidy(value)
    assert tidy(json.loads(json.dumps(once, allow_nan=False))) == once


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_seven_significant_digits(value):
    # The smallest float there is has no seven digits to keep.
    assert math.isclose(tidy(value), value, rel_tol=1e-6, abs_tol=1e-300)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_float_that_is_not_finite_becomes_null(tmp_path, value):
    write_json(tmp_path / "a.json", {"a": value, "b": [value, 1.0]})
    assert read_json(tmp_path / "a.json") == {"a": None, "b": [None, 1.0]}


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full_disk(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_is_no_plain_data_is_refused_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, 1)
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_a_temporary_file_replaces_the_old_one_only_when_the_block_succeeds(tmp_path, shared):
    path = tmp_path / "file"

    def write(words, *, fail):
        with replacing(path, shared=shared) as temporary:
            temporary.write_text(words)
            if fail:
                raise RuntimeError("killed")

    write("old", fail=False)
    with pytest.raises(RuntimeError, match="killed"):
        write("half", fail=True)
    assert path.read_text() == "old"
    write("new", fail=False)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]
