"""Checkpoints that were damaged, or written by another version: known, told, and gone round."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tiny
from fairsaoml.core.errors import RunError
from fairsaoml.runs import checkpoint as module
from fairsaoml.runs.checkpoint import load_checkpoint, newest, save_checkpoint, sealed

LIKE = {"theta": np.zeros(3, np.float32), "rounds": np.int32(0)}


def state_of(round):
    return {"theta": np.full(3, round, np.float32), "rounds": np.int32(round)}


@pytest.fixture
def folder(tmp_path):
    """Checkpoints after rounds 5 and 8."""
    for round in (5, 8):
        save_checkpoint(tmp_path / "checkpoint", round, state_of(round), {"learner": "élan"})
    return tmp_path / "checkpoint"


def found(folder):
    loaded = load_checkpoint(folder, LIKE)
    assert loaded.state["rounds"] == loaded.round
    return loaded.round


@pytest.mark.parametrize("name", ["manifest.json", "state-00000008.safetensors"])
@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_any_flipped_bit_is_noticed(folder, name):
    whole = (folder / name).read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        (folder / name).write_bytes(damaged)
        assert found(folder) == 5, damaged


@pytest.mark.parametrize("name", ["manifest.json", "state-00000008.safetensors"])
@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_a_cut_is_noticed_wherever_it_is(folder, name):
    whole = (folder / name).read_bytes()
    for length in range(len(whole) - 1):  # without its last newline a manifest is whole
        (folder / name).write_bytes(whole[:length])
        assert found(folder) == 5
    (folder / name).write_bytes(whole)
    assert found(folder) == 8


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_a_damaged_state_does_not_push_out_a_whole_one(folder, monkeypatch):
    """Killed before the next manifest is written, the whole one must still be there."""
    flip(folder / "state-00000008.safetensors")

    def killed(path, content, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.files, "write_sealed", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(folder, 9, state_of(9), {})
    assert found(folder) == 5


def test_what_kills_have_left_lying_about_is_cleared_away(folder):
    for round in (6, 7):
        (folder / f".state-{round:08d}.safetensors.part").write_bytes(b"half")
    save_checkpoint(folder, 9, state_of(9), {})
    states = ["state-00000008.safetensors", "state-00000009.safetensors"]
    assert sorted(os.listdir(folder)) == ["manifest.json", "previous.json", *states]


def test_a_checkpoint_later_than_asked_for_is_passed_over(folder):
    assert load_checkpoint(folder, LIKE, at_most=8).round == 8
    assert load_checkpoint(folder, LIKE, at_most=7).round == 5
    assert load_checkpoint(folder, LIKE, at_most=4) is None


@pytest.mark.parametrize("file", ["../state-00000008.safetensors", "/etc/passwd", 7, None])
@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_a_manifest_names_files_of_its_own_folder_only(folder, file):
    shutil.copy(folder / "state-00000008.safetensors", folder.parent)
    as_schema(folder, 3, file=file)
    assert found(folder) == 5


# Older and newer


def as_schema(folder, schema, **changes):
    """Let the newest manifest be one of another schema."""
    path = folder / "manifest.json"
    manifest = {**json.loads(path.read_text()), "schema": schema, **changes}
    path.write_text(json.dumps(sealed(manifest)))


def test_a_checkpoint_of_the_first_schema_is_read_as_it_was_written(folder):
    path = folder / "manifest.json"
    manifest = {**json.loads(path.read_text()), "schema": 1}
    del manifest["manifest_sha256"]
    path.write_text(json.dumps(manifest))
    assert found(folder) == 8


def test_an_older_checkpoint_migrates_schema_by_schema(folder, monkeypatch):
    """As it might be: schema 8 calls its state `weights`, 9 counts rounds from 0."""

    def renamed(manifest, arrays):
        return manifest, {key.replace("weights", "theta"): leaf for key, leaf in arrays.items()}

    def counted_from_one(manifest, arrays):
        round = manifest["round"] + 1
        return {**manifest, "round": round}, {**arrays, "['rounds']": np.int32(round)}

    monkeypatch.setattr(module, "CHECKPOINT_SCHEMA", 10)
    monkeypatch.setattr(module, "MIGRATIONS", {8: renamed, 9: counted_from_one})
    old = {"weights": np.full(3, 8, np.float32), "rounds": np.int32(7)}
    save_checkpoint(folder, 7, old, {"learner": "l"})
    as_schema(folder, 8)
    assert found(folder) == 8
    assert newest(folder, lambda manifest, arrays: manifest["schema"]) == 10
    assert load_checkpoint(folder, LIKE).state["theta"].tolist() == [8, 8, 8]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (99, r"of schema 7 or older, got 99; it was written by a newer fairsaoml: upgrade"),
        (0, r"of schema 1 to 7, got 0; continue with the version of fairsaoml that wrote it"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused_and_nothing_is_changed(folder, schema, words):
    as_schema(folder, schema)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RunError, match=words):
        found(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# What a person is told


def resumed(folder):
    """The command, in a process of its own: warnings go where a person sees them."""
    code = "from fairsaoml.cli import main; main()"
    words = [sys.executable, "-c", code, "run", "--resume", str(folder), "--quiet"]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ)


@tiny.one_learner
def test_the_command_says_that_it_uses_the_checkpoint_before(finished, learner, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "summary.json").unlink()
    kept = folder / "checkpoint"
    manifest = json.loads((kept / "manifest.json").read_text())
    shutil.copy(kept / manifest["file"], kept / "state-before.safetensors")
    before = {**manifest, "file": "state-before.safetensors"}
    (kept / "previous.json").write_text(json.dumps(sealed(before)))
    flip(kept / manifest["file"])
    said = resumed(folder)
    assert said.returncode == 0, said.stderr
    assert f"{manifest['file']} is not what was written); trying the previous one" in said.stderr
    assert tiny.lines(folder) == tiny.lines(finished)
    as_schema(kept, 99)
    (folder / "summary.json").unlink()
    said = resumed(folder)
    assert said.returncode == 1
    assert "written by a newer fairsaoml: upgrade to continue" in said.stderr
    assert "Traceback" not in said.stderr
