"""Every example runs as it stands, in a place of its own, and says what its first lines promise."""

import runpy
from pathlib import Path

import pytest
import sklearn

EXAMPLES = Path(__file__).parent.parent / "examples"
# Those that another test runs: file -> where.
ELSEWHERE = {
    "add_a_learner.py": "test_conformance.py",
    "delayed_labels.py": "test_delayed.py",
    "streaming_metric.py": "test_streaming_metric.py",
}
SAYS = {"sklearn_pipeline.py": "chosen: dp", "quickstart.py": "round 30: accuracy 0."}
HERE = sorted({path.name for path in EXAMPLES.glob("*.py")} - set(ELSEWHERE))


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """What an example writes or sets stays in the test."""
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        yield


@pytest.mark.parametrize("name", HERE)
def test_an_example_runs(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    said = capsys.readouterr().out
    assert said.strip()
    assert SAYS.get(name, "") in said


@pytest.mark.parametrize(("name", "where"), ELSEWHERE.items())
def test_an_example_that_runs_elsewhere_does_so(name, where):
    assert name in (Path(__file__).parent / where).read_text()


def test_the_quickstart_is_ten_lines():
    lines = (EXAMPLES / "quickstart.py").read_text().split('"""')[2].strip().splitlines()
    assert len([line for line in lines if line.strip()]) <= 11  # and one that saves it
