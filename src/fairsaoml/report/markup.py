"""Elements of a page: plain text is escaped; only what was built here is markup."""

import re
from html import escape

__all__ = ["Markup", "element", "join", "number"]

Attribute = str | float | int | None


class Markup(str):
    """Text that is already markup. Any other string is escaped when it enters an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: Attribute) -> Markup:
    """Return an element with its attributes and children.

    A trailing underscore is dropped and the others become hyphens, as in `class_` and
    `stroke_width`; an attribute that is None is left out.

    >>> element("p", "a < b", class_="note", id=None)
    '<p class="note">a &lt; b</p>'
    >>> element("p", element("b", "bold"), " & plain")
    '<p><b>bold</b> &amp; plain</p>'
    >>> element("line", x1=0, x2=1.5, stroke_width=2)
    '<line x1="0" x2="1.5" stroke-width="2"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup(f"<{name}{written}/>" if name in EMPTY else f"<{name}{written}></{name}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: str) -> Markup:
    """Return parts side by side, plain text escaped.

    >>> join("1 < 2", Markup("<br/>"))
    '1 &lt; 2<br/>'
    """
    return Markup("".join(part if isinstance(part, Markup) else _safe(part) for part in parts))


def number(value: float) -> str:
    """Return a coordinate: at most two decimals, no trailing zeros, no minus zero.

    >>> number(3.0), number(1.239), number(-0.001)
    ('3', '1.24', '0')
    """
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def _safe(words: str) -> str:
    r"""Escaped, and without the control characters that no XML may hold.

    >>> _safe('<b> & "x"' + chr(0))
    '&lt;b&gt; &amp; &quot;x&quot;�'
    """
    return escape(CONTROL.sub("\ufffd", words))


def _value(value: str | float | int) -> str:
    return value if isinstance(value, str) else number(value)


CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

# Elements without an end tag, in HTML and in SVG.
EMPTY = {"br", "col", "hr", "img", "input", "meta"} | {"circle", "line", "path", "rect", "use"}
