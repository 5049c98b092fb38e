"""Compiled programs on disk: a torn one is found and written again."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from fairsaoml.evaluate import compilation
from fairsaoml.evaluate.compilation import (
    LOOKED,
    ONE_THREAD,
    cache_folder,
    remove_torn,
    use_cache,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own; JAX keeps to one folder until it is told to look again."""
    shared = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("FAIRSAOML_CACHE", str(tmp_path))
    compilation_cache.reset_cache()
    use_cache()
    yield cache_folder()
    jax.config.update("jax_compilation_cache_dir", shared)
    compilation_cache.reset_cache()


def compiled() -> None:
    """One small program, as a new process would meet it."""
    jax.jit(lambda x: x * 2.5 + 1.5)(np.ones(7, np.float32)).block_until_ready()


def programs(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.glob("*-cache")}


def test_a_program_torn_by_a_kill_is_removed_and_kept_anew(folder):
    compiled()
    whole = programs(folder)
    assert whole
    assert remove_torn(folder) == []
    for name, content in whole.items():
        (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
        compiled()
    assert all(len(content) < len(whole[name]) for name, content in programs(folder).items())
    assert sorted(remove_torn(folder)) == sorted(whole)
    compiled()
    assert programs(folder).keys() == whole.keys()
    assert remove_torn(folder) == []


def test_a_process_looks_when_it_begins(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("FAIRSAOML_CACHE", str(tmp_path / "another"))
    cache_folder().mkdir(parents=True)
    torn = cache_folder() / "jit_torn-cache"
    torn.touch()
    use_cache()
    assert not torn.exists()


def test_only_what_was_written_since_the_last_look_is_read(folder):
    remove_torn(folder)
    looked = (folder / LOOKED).stat().st_mtime
    older, newer = folder / "jit_older-cache", folder / "jit_newer-cache"
    for torn, age in ((older, 1), (newer, -1)):
        torn.touch()
        os.utime(torn, (looked - age, looked - age))
    assert remove_torn(folder) == [newer.name]
    assert older.exists()


def test_a_setting_that_the_compiler_does_not_know_is_left_out():
    assert compilation._known(ONE_THREAD, False) == {ONE_THREAD: False}
    assert compilation._known("xla_of_another_version", False) == {}
