"""Write the type stubs of the classes that are made from the registry: `make stubs`.

Editors and type checkers cannot run the registry, so the settings of its classes are written down
for them, each once, in `_attributes.pyi`: as dataclasses, from which they know the constructors.
`fairsaoml/__init__.pyi` lists the scikit-learn classes. A test checks that all of it is current.
"""

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Container, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import fairsaoml
from fairsaoml.core.settings import Settings
from fairsaoml.estimators import river, sklearn
from fairsaoml.estimators.adapter import RENAMED
from fairsaoml.learners.registry import BUILTIN, entry

PACKAGE = Path(fairsaoml.__file__).parent
CLASSES = "from .estimators.sklearn import "  # how lines of `__init__.pyi` begin that are written
HEADER = """\
# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any, dataclass_transform

"""
# There is no such module when the program runs: a class gets its attributes from its constructor.
ATTRIBUTES = "_attributes"
SETTINGS = """\
@dataclass_transform(eq_default=False, kw_only_default=True)
class Settings: ...
"""


def stubs() -> dict[Path, str]:
    """Return the text of every stub by its path."""
    written = {
        PACKAGE / "estimators" / f"{ATTRIBUTES}.pyi": stub_of_attributes(),
        PACKAGE / "estimators" / "sklearn.pyi": stub_of(sklearn, sklearn.OnlineClassifier),
        PACKAGE / "estimators" / "river.pyi": stub_of(river, river.RiverClassifier),
        PACKAGE / "__init__.pyi": public_names(),
    }
    return {path: formatted(text, path) for path, text in written.items()}


def stub_of_attributes() -> str:
    """Return a class for each class of settings, with its own settings as attributes."""
    written = {Settings.__name__: SETTINGS}  # which has no settings of its own
    for cls in (*learner_classes(sklearn), *learner_classes(river)):
        offered = {field.name for field in cls._parameter_fields.values()}
        for settings in settings_of(cls):
            kinds = [kind for kind in settings.__mro__ if is_dataclass(kind)]
            if offered.issuperset(field.name for kind in kinds for field in fields(kind)):
                for kind in reversed(kinds):
                    names = kind.__annotations__
                    written.setdefault(kind.__name__, attributes(kind, kind.__bases__, names))
            else:  # it inherits settings that it does not offer
                written[settings.__name__] = attributes(settings, (Settings,), offered)
    return HEADER + "\n".join(written.values())


def settings_of(cls: Any) -> tuple[type, type]:
    """Return the settings of an estimator's adapter, and of its learner."""
    return cls._adapter_settings, entry(cls._learner).config


def attributes(settings: Any, bases: Iterable[type], names: Container[str]) -> str:
    """Return a class with those of the settings that have one of the names."""
    inherited = ", ".join(base.__name__ for base in bases if is_dataclass(base))
    hints, lines = get_type_hints(settings), []
    meanings = [*inspect.getdoc(settings).splitlines()[:1], "", "Attributes", "----------"]
    for field in fields(settings):
        if field.name in names:
            name = RENAMED.get(field.name, field.name)
            default = "" if field.default is MISSING else f" = {field.default!r}"
            lines.append(f"    {name}: {written_type(hints[field.name])}{default}")
            if field.metadata:
                meaning = textwrap.fill(field.metadata["meaning"], 88)
                meanings += [name, textwrap.indent(meaning, "    ")]
    head = f"class {settings.__name__}({inherited}):"
    text = "\n".join(meanings)
    return "\n".join([head, textwrap.indent(f'"""{text}"""', "    "), "", *lines, ""])


def written_type(hint: Any) -> str:
    """Return a type as it is written in a stub."""
    words = inspect.formatannotation(hint)
    return words.replace("typing.", "").replace("collections.abc.", "")


def stub_of(module: ModuleType, base: type) -> str:
    """Return the stub of a module of estimators: its base class and a class for each learner."""
    imports = [
        f"from fairsaoml.estimators import {ATTRIBUTES} as settings",
        f"from {base.__module__} import {base.__name__} as {base.__name__}",
    ]
    written: dict[str, str] = {}
    for cls in learner_classes(module):
        both = settings_of(cls)
        constructor = f"_{both[1].__name__.removesuffix('Config')}"  # of two classes, where alike
        inherited = ", ".join(f"settings.{settings.__name__}" for settings in both)
        written[constructor] = f"class {constructor}({inherited}): ...\n"
        written[cls.__name__] = stub_of_class(cls, constructor, base.__name__)
    return HEADER + "\n".join([*imports, "", *written.values()])


def learner_classes(module: ModuleType) -> Iterator[Any]:
    """Yield the classes of our own learners; other packages' are not for everyone's stub."""
    for name in module.__all__:
        if getattr(getattr(module, name), "_learner", None) in BUILTIN:
            yield getattr(module, name)


def stub_of_class(cls: Any, constructor: str, base: str) -> str:
    """Return a class with its docstring, and its settings by inheritance.

    They come from a class of their own, and so does the constructor (`init=False`): one that a type
    checker derives for a class with bases of unknown types, as scikit-learn's are, takes anything.
    What the settings mean of the class that most people begin with is in its docstring.
    """
    description, _, meanings = inspect.cleandoc(cls.__doc__).partition("\n\nParameters\n")
    lines = quoted(description)
    if cls is fairsaoml.AdaptiveFairClassifier:
        lines[-1] = lines[-1].removesuffix('"""')
        lines += ["", "    Parameters"]
        for line in meanings.splitlines():
            indent = "    " + line[: len(line) - len(line.lstrip())]
            lines += textwrap.wrap(
                line.strip(), 100, initial_indent=indent, subsequent_indent=indent
            )
        lines += ['    """']
    head = f"class {cls.__name__}({constructor}, {base}, init=False):"
    return "\n".join([head, *lines, ""])


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
