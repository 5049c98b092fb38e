"""Streams by name: those of the package, and those that another package brings."""

import json
from pathlib import Path

import pytest

import tiny
from fairsaoml.core.errors import ConfigError
from fairsaoml.streams.catalog import CATALOG, STREAMS, open_stream, setting_names

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture
def coins(monkeypatch, tmp_path):
    """A package with the stream `coins` is installed."""
    info = tmp_path / "fairsaoml_coins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairsaoml-coins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fairsaoml.streams]\ncoins = fairsaoml_plugin.stream:ENTRY\n"
    )
    for folder in (PLUGIN, tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    STREAMS.__dict__.pop("_plugins", None)
    yield
    STREAMS.__dict__.pop("_plugins", None)


@pytest.mark.usefixtures("coins")
def test_a_stream_of_another_package_is_listed_run_and_predicted(command, tmp_path):
    listed = json.loads(command("streams", "--json").out)
    assert [item["name"] for item in listed] == [*CATALOG, "coins"]
    assert listed[-1]["settings"] == ["bend", "tasks", "rows"]
    words = ["--seeds", 1, "--out", tmp_path / "run", "--quiet", "--json", "--set", "tasks=3"]
    for key, value in tiny.SHARED.items():
        words += ["--set", f"{key}={value}"]
    said = command("run", "coins", *words)
    assert said.code == 0, said.err
    assert json.loads(said.out)["rounds"] == 3
    (tmp_path / "new.csv").write_text("thumb\n0.5\n-1\n")
    assert len(command("predict", tmp_path / "run", tmp_path / "new.csv").out.splitlines()) == 3


def test_without_that_package_the_name_is_unknown():
    with pytest.raises(ConfigError, match="unknown stream 'coins'; "):
        open_stream("coins")


def test_a_saved_encoder_is_no_setting_of_a_table():
    names = setting_names("loans.csv")
    assert "label" in names
    assert "encoder" not in names
