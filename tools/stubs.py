"""Write the type stubs of the classes that are made from the registry: `make stubs`.

Editors and type checkers cannot run the registry, so the signatures of its classes are written
down for them; `fairsaoml/__init__.pyi` lists the scikit-learn classes. A test checks that all of
it is current.
"""

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fairsaoml
from fairsaoml.estimators import river, sklearn
from fairsaoml.learners.registry import BUILTIN

PACKAGE = Path(fairsaoml.__file__).parent
CLASSES = "from .estimators.sklearn import "  # how lines of `__init__.pyi` begin that are written
HEADER = """\
# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any

from {home} import {base} as {base}

"""


def stubs() -> dict[Path, str]:
    """Return the text of every stub by its path."""
    written = {
        PACKAGE / "estimators" / "sklearn.pyi": stub_of(sklearn, sklearn.OnlineClassifier),
        PACKAGE / "estimators" / "river.pyi": stub_of(river, river.RiverClassifier),
        PACKAGE / "__init__.pyi": public_names(),
    }
    return {path: formatted(text, path) for path, text in written.items()}


def stub_of(module: ModuleType, base: type) -> str:
    """Return the stub of a module of estimators: its base class and a class for each learner."""
    classes = [stub_of_class(cls, base.__name__) for cls in learner_classes(module)]
    return HEADER.format(home=base.__module__, base=base.__name__) + "\n".join(classes)


def learner_classes(module: ModuleType) -> Iterator[Any]:
    """Yield the classes of our own learners; other packages' are not for everyone's stub."""
    for name in module.__all__:
        if getattr(getattr(module, name), "_learner", None) in BUILTIN:
            yield getattr(module, name)


def stub_of_class(cls: Any, base: str) -> str:
    """Return a class with its docstring, its attributes and their meaning, and its constructor."""
    description = cls.__doc__.partition("\n\n    Parameters")[0].rstrip()
    lines = [f"class {cls.__name__}({base}):", *quoted(inspect.cleandoc(description)), ""]
    arguments = []
    for name, parameter in inspect.signature(cls).parameters.items():
        kind = inspect.formatannotation(parameter.annotation)
        kind = kind.replace("typing.", "").replace("collections.abc.", "")
        lines += [f"    {name}: {kind}", *quoted(cls._parameter_fields[name].metadata["meaning"])]
        arguments.append(f"        {name}: {kind} = {parameter.default!r},")
    constructor = ["    def __init__(self, *,", *arguments, "    ) -> None: ..."]
    return "\n".join([*lines, *constructor, ""])


def quoted(text: str) -> list[str]:
    """Return a docstring in lines that are short enough."""
    wrapped = "\n\n".join(textwrap.fill(paragraph, 92) for paragraph in text.split("\n\n"))
    return textwrap.indent(f'"""{wrapped}"""', "    ").splitlines()


def public_names() -> str:
    """Return `__init__.pyi` with the classes that there are now."""
    first, second, *names = (PACKAGE / "__init__.pyi").read_text().splitlines()
    kept = [line for line in names if not line.startswith(CLASSES)]
    classes = [f"{CLASSES}{cls.__name__} as {cls.__name__}" for cls in learner_classes(sklearn)]
    return "\n".join([first, second, *classes, *kept])


def formatted(text: str, path: Path) -> str:
    """Return the text as ruff sorts and formats it."""
    for command in (["check", "--select=I,F401", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
