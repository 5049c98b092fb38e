"""What editors and type checkers know of the public names is true, and current."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.stubs import learner_classes, stubs

import fairsaoml
from fairsaoml.estimators import river, sklearn

CONFIG = Path(__file__).parent.parent / "pyproject.toml"


NAMES = [f"reveal_type(fairsaoml.{name})" for name in fairsaoml.__all__]
MISTAKES = {
    "AdaptiveFairClassifier(tolerence=0.1)": 'Unexpected keyword argument "tolerence"',
    'AdaptiveFairClassifier(ratio="low")': 'has incompatible type "str"',
    "river.FairGLCClassifier(task_sise=3)": 'Unexpected keyword argument "task_sise"',
    'run(RunSpec(stream="synthetic"), overwrite=True)': 'keyword argument "overwrite"',
    "from fairsaoml import fairness_for_free": 'has no attribute "fairness_for_free"',
}
MODEL = "AdaptiveFairClassifier(ratio=0.8)"
TYPED = {
    f"reveal_type({MODEL}.fit([[1.0]], [1], sensitive_features=['f']))": "AdaptiveFairClassifier",
    f"reveal_type({MODEL}.ratio)": '"float"',
    f"reveal_type({MODEL}.groups_)": '"dict[str, tuple[str, ...]]"',
}
CLASSES = {
    f"reveal_type({module.__name__}.{cls.__name__})": cls
    for module in (river, sklearn)
    for cls in learner_classes(module)
}
HEAD = [
    "import fairsaoml",
    "from fairsaoml import AdaptiveFairClassifier, RunSpec, run",
    "import fairsaoml.estimators.sklearn",
    "from fairsaoml.estimators import river",
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says of each line of a user's file, all of them checked at once."""
    lines = [*NAMES, *MISTAKES, *TYPED, *CLASSES]
    script = tmp_path_factory.mktemp("script") / "script.py"
    script.write_text("\n".join([*HEAD, *lines]))
    command = [sys.executable, "-m", "mypy", "--config-file", CONFIG, script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CONFIG.parent)
    about = [line.split(":", 2)[1:] for line in done.stdout.splitlines() if "script.py" in line]
    return {
        line: " ".join(text for number, text in about if int(number) == place)
        for place, line in enumerate(lines, start=len(HEAD) + 1)
    }


def test_stubs_are_current():
    for path, text in stubs().items():
        assert path.read_text() == text, f"{path.name} is out of date; run `make stubs`"


@pytest.mark.parametrize("line", NAMES)
def test_every_public_name_has_its_type(said, line):
    assert "Revealed type" in said[line]
    assert '"Any"' not in said[line]


@pytest.mark.parametrize(("line", "problem"), MISTAKES.items())
def test_a_mistake_is_an_error_before_anything_runs(said, line, problem):
    assert problem in said[line]


@pytest.mark.parametrize(("line", "kind"), TYPED.items())
def test_what_an_estimator_has_and_returns_is_typed(said, line, kind):
    assert kind in said[line]


def test_the_stub_of_a_class_says_what_its_signature_says():
    text = {path.name: text for path, text in stubs().items()}["sklearn.pyi"]
    body = text.partition("class AdaptiveFairClassifier")[2]
    for name, parameter in inspect.signature(fairsaoml.AdaptiveFairClassifier).parameters.items():
        assert f"    {name} : default {parameter.default!r}\n" in body
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(("line", "cls"), CLASSES.items())
def test_a_type_checker_knows_every_parameter_of_every_class(said, line, cls):
    parameters = said[line].partition("def (*, ")[2].partition(") -> ")[0]
    assert set(re.findall(r"(\w+): [^=]+ =", parameters)) == {*inspect.signature(cls).parameters}
