"""What editors and type checkers know of the public names is true, and current."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from tools.stubs import stubs

import fairsaoml

CONFIG = Path(__file__).parent.parent / "pyproject.toml"


def checked_by_mypy(folder, code):
    """What mypy says of a user's file, line by line, without the file's name."""
    (folder / "script.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", CONFIG, folder / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CONFIG.parent)
    return [line.partition(":")[2] for line in done.stdout.splitlines() if "script.py" in line]


def test_stubs_are_current():
    for path, text in stubs().items():
        assert path.read_text() == text, f"{path.name} is out of date; run `make stubs`"


def test_every_public_name_has_its_type(tmp_path):
    names = fairsaoml.__all__
    code = "import fairsaoml\n" + "".join(f"reveal_type(fairsaoml.{name})\n" for name in names)
    said = checked_by_mypy(tmp_path, code)
    assert len(said) == len(names)
    for name, line in zip(names, said, strict=True):
        assert "Revealed type" in line
        assert '"Any"' not in line, name


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("AdaptiveFairClassifier(tolerence=0.1)", 'Unexpected keyword argument "tolerence"'),
        ('AdaptiveFairClassifier(ratio="low")', 'has incompatible type "str"'),
        ("river.FairGLCClassifier(task_sise=3)", 'Unexpected keyword argument "task_sise"'),
        ('run(RunSpec(stream="synthetic"), overwrite=True)', 'keyword argument "overwrite"'),
        ("from fairsaoml import fairness_for_free", 'has no attribute "fairness_for_free"'),
    ],
)
def test_a_mistake_is_an_error_before_anything_runs(mistakes, line, problem):
    assert problem in mistakes[line]


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory, request):
    """What mypy says of each wrong line, all of them checked at once."""
    marks = request.module.test_a_mistake_is_an_error_before_anything_runs.pytestmark
    lines = [line for line, _ in marks[0].args[1]]
    head = ["from fairsaoml import AdaptiveFairClassifier, RunSpec, run"]
    head += ["from fairsaoml.estimators import river"]
    said = checked_by_mypy(tmp_path_factory.mktemp("script"), "\n".join([*head, *lines]))
    numbered = [one.split(":", 1) for one in said]
    return {
        line: " ".join(text for number, text in numbered if int(number) == place)
        for place, line in enumerate(lines, start=len(head) + 1)
    }


def test_the_methods_of_an_estimator_are_typed(tmp_path):
    code = (
        "from fairsaoml import AdaptiveFairClassifier\n"
        "model = AdaptiveFairClassifier(ratio=0.8)\n"
        "reveal_type(model.fit([[1.0]], [1], sensitive_features=['f']))\n"
        "reveal_type(model.ratio)\n"
        "reveal_type(model.groups_)\n"
    )
    said = " ".join(checked_by_mypy(tmp_path, code))
    assert "AdaptiveFairClassifier" in said
    assert '"float"' in said
    assert '"dict[str, tuple[str, ...]]"' in said


def test_the_stub_of_a_class_says_what_its_signature_says():
    text = {path.name: text for path, text in stubs().items()}["sklearn.pyi"]
    body = text.partition("class AdaptiveFairClassifier")[2]
    for name, parameter in inspect.signature(fairsaoml.AdaptiveFairClassifier).parameters.items():
        assert f"        {name}: " in body
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
