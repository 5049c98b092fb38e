"""The reference, from the docstrings and the commands' own help: it cannot fall behind.

`docs/reference.md` says what is where; a comment such as `<!-- names: fairsaoml.core.types -->`
is replaced by all public names of that module with their signatures and docstrings,
`<!-- commands -->` by the commands, `<!-- modules -->` by a list of all modules.
"""

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

__all__ = ["expanded"]

DIRECTIVE = re.compile(r"^<!-- (names|commands|modules)(?:: ([\w. ]+))? -->$", re.MULTILINE)
WIDTH = 88  # letters of a signature before it is broken


def expanded(text: str) -> str:
    """A page's Markdown with its directives carried out."""
    wanted = [named.split() for what, named in DIRECTIVE.findall(text) if what == "names"]
    # A name has one place: where it is asked for by itself, else with its module.
    alone = {path for paths in wanted for path in paths if not _is_module(path)}
    names = _Names([_found(path) for path in alone])

    def carried_out(found: re.Match[str]) -> str:
        what, named = found.groups()
        if what == "names":
            return "\n".join(names.entries(path) for path in named.split())
        return _commands() if what == "commands" else _modules()

    return DIRECTIVE.sub(carried_out, text)


# Names


def _is_module(path: str) -> bool:
    try:
        import_module(path)
    except ModuleNotFoundError:
        return False
    return True


def _found(path: str) -> Any:
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name)


class _Names:
    """Public names as Markdown, each thing and each method once."""

    def __init__(self, elsewhere: Sequence[Any]) -> None:
        self._told = list(elsewhere)  # and by and by the rest
        self._methods: dict[Any, str] = {}  # method -> the class it was told of

    def entries(self, path: str) -> str:
        """All names of a module, in the order it lists them; or one name of it."""
        if not _is_module(path):
            home, _, name = path.rpartition(".")
            return self._entry(home, name, _found(path))
        module = import_module(path)
        lines = []
        for name in module.__all__:
            thing = getattr(module, name)
            if not any(thing is one for one in self._told):
                self._told.append(thing)
                lines.append(self._entry(path, name, thing))
        return "\n".join(lines)

    def _entry(self, home: str, name: str, thing: Any) -> str:
        import fairsaoml

        short = "fairsaoml" if getattr(fairsaoml, name, None) is thing else home
        lines = [f"### `{name}`", "", f"`from {short} import {name}`", ""]
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
            lines += ["```python", _signature(name, thing), "```", ""]
        lines += [_docstring(thing), ""]
        if inspect.isclass(thing):
            lines += self._own_methods(name, thing)
        return "\n".join(lines)

    def _own_methods(self, name: str, thing: type) -> Iterator[str]:
        shared = set()
        for method, made in _methods(thing):
            if made in self._methods:
                shared.add(self._methods[made])
                continue
            self._methods[made] = name
            own = getattr(thing, method)
            if isinstance(own, property):
                yield f"**`.{method}`** {_docstring(own)}\n"
            else:
                yield f"```python\n{_signature(f'.{method}', own)}\n```\n\n{_docstring(own)}\n"
        for other in sorted(shared):
            yield f"Methods as those of [`{other}`](#{other.lower()}).\n"


def _methods(thing: type) -> Iterator[tuple[str, Any]]:
    """A class's public methods and properties, those of its bases in this package included."""
    seen = set(getattr(thing, "_fields", ()))
    if dataclasses.is_dataclass(thing):
        seen |= {item.name for item in dataclasses.fields(thing)}
    for one in thing.__mro__:
        if not one.__module__.startswith("fairsaoml"):
            continue
        for name, value in vars(one).items():
            public = not name.startswith("_") and name not in seen
            kind = inspect.isfunction(value) or isinstance(value, property | classmethod)
            if public and kind and inspect.getdoc(getattr(one, name)):
                seen.add(name)
                yield name, value


def _signature(name: str, thing: Any) -> str:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return name
    signature = re.sub(r"'([^']*)'", _unquoted, signature)
    signature = signature.replace("typing.", "").replace("collections.abc.", "")
    signature = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", signature)  # only a type's own name
    signature = re.sub(r"\(self(?:, )?", "(", signature)
    if len(name + signature) <= WIDTH:
        return name + signature
    inside, returned = signature[1:].rsplit(")", 1)
    return f"{name}(\n" + "".join(f"    {one},\n" for one in _parts(inside)) + f"){returned}"


def _unquoted(found: re.Match[str]) -> str:
    """A type that was written as a string, without the quotes; any other string as it is."""
    return found[1] if re.fullmatch(r"[A-Z]\w*", found[1]) else found[0]


def _parts(inside: str) -> Iterator[str]:
    """What stands between the commas of a signature, those inside brackets apart."""
    depth, part = 0, ""
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


def _docstring(thing: Any) -> str:
    """A docstring as Markdown: examples as code, a section of parameters as a list."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^(\w+)\n-+$", r"**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(\w+) : (.*)\n +(.*)$", r"- `\1`, \2: \3", text, flags=re.MULTILINE)
    lines: list[str] = []
    shown = False  # inside an example
    for line in text.splitlines():
        begins = line.startswith(">>>")
        if begins and not shown:
            lines += ["", "```pycon"]
            shown = True
        elif not line.strip() and shown:
            lines += ["```"]
            shown = False
        lines.append(line)
    return "\n".join([*lines, "```"] if shown else lines)


# Commands


def _commands() -> str:
    """Every command with its arguments and options, as its own `--help` has them."""
    import typer

    from fairsaoml.cli import app

    group: Any = typer.main.get_command(app)
    return "\n".join(_command(f"fairsaoml {name}", one) for name, one in group.commands.items())


def _command(name: str, command: Any) -> str:
    nested = getattr(command, "commands", {})
    if nested:
        return "\n".join(_command(f"{name} {other}", one) for other, one in nested.items())
    lines = [f"### `{name}`", "", inspect.cleandoc(command.help or ""), ""]
    if command.params:
        lines += ["| | |", "|---|---|"]
    for parameter in command.params:
        lines.append(f"| {_words(parameter)} | {_meaning(parameter)} |")
    return "\n".join([*lines, ""])


def _words(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    return ", ".join(f"`{word}`" for word in [*parameter.opts, *parameter.secondary_opts])


def _meaning(parameter: Any) -> str:
    said = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    if isinstance(default, bool | None) or default == () or callable(default) or "[" in said:
        return said
    return f"{said} [{default}]"


# Modules


def _modules() -> str:
    """All modules and the first line of what they say of themselves."""
    import fairsaoml

    rows = ["| module | what |", "|---|---|"]
    for found in pkgutil.walk_packages(fairsaoml.__path__, "fairsaoml."):
        if found.name.startswith(("fairsaoml.cli.", "fairsaoml.report.")):
            continue
        first = (import_module(found.name).__doc__ or "").strip().partition("\n")[0]
        rows.append(f"| `{found.name}` | {first.replace('|', chr(92) + '|')} |")
    return "\n".join([*rows, ""])
