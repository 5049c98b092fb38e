"""The look of every figure, and its SVG, readable on light and on dark pages."""

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairsaoml.report.svg import spread_out

__all__ = [
    "EDGE",
    "GROUND",
    "HAIR",
    "INK",
    "LEVELS",
    "PALE",
    "SOFT",
    "STROKES",
    "Stroke",
    "figure_of",
    "label_ends",
    "styled",
    "to_svg",
    "write",
]

INK, SOFT, HAIR, EDGE = "#1c2024", "#5c646d", "#e4e7ea", "#c3c9cf"
GROUND, PALE = "#ffffff", "#f5f6f7"


class Stroke(NamedTuple):
    """A line's colour, the same on dark pages, and its dashes in points; none: a solid line."""

    colour: str
    dark: str
    dashes: tuple[float, ...] = ()

    @property
    def linestyle(self) -> Any:
        """As matplotlib wants it."""
        return (0, self.dashes) if self.dashes else "solid"


# The first four stay apart in every common colour blindness; the dashes tell all of them apart.
STROKES = (
    Stroke("#1d62b5", "#559df0"),
    Stroke("#d96708", "#ff9a4d", (7, 2.5)),
    Stroke("#0e9a7a", "#35c49a", (2, 2)),
    Stroke("#5a2378", "#ecc6fa", (9, 2.5, 2, 2.5)),
    Stroke("#7b5a00", "#b39400", (4, 2)),
    Stroke("#a8285c", "#dd5486", (12, 3)),
    Stroke("#3a9fd0", "#b4ecfb", (1, 2.5)),
    Stroke("#59616b", "#838c96", (6, 2, 1.5, 2, 1.5, 2)),
    Stroke("#8a9a2b", "#c3d35a", (8, 2, 1, 2)),
    Stroke("#b08968", "#d8b79a", (3, 1.5)),
)
LEVELS = ("#eef3cf", "#c5e3bd", "#8ecdb9", "#57b0b8", "#338db0", "#2d6aa0", "#2f4889", "#2d2a63")
# Each colour's counterpart on a dark page; a colour that is not here stays as it is.
DARK = {
    INK: "#e8eaed",
    SOFT: "#a0a8b1",
    HAIR: "#2b3036",
    EDGE: "#4a525b",
    GROUND: "#15181c",
    PALE: "#1d2126",
    **{stroke.colour: stroke.dark for stroke in STROKES},
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
RC: dict[Any, Any] = {
    "figure.dpi": 72,  # a point of the figure is a pixel of the SVG
    "figure.facecolor": GROUND,
    "figure.constrained_layout.h_pad": 0.15,
    "figure.constrained_layout.w_pad": 0.18,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 11,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    "grid.color": HAIR,
    "grid.linewidth": 1.0,
    "lines.linewidth": 1.9,
    "lines.scale_dashes": False,
    **{f"{axis}tick.{what}": value for axis in "xy"
       for what, value in {"color": SOFT, "major.size": 0, "minor.size": 0}.items()},
    "svg.fonttype": "none",
    "svg.hashsalt": "fairsaoml",  # the same picture is the same bytes
}  # fmt: skip
LABEL_HEIGHT, LEADER = 13.0, 26.0  # points: from one name to the next, from a line to its name

styled = matplotlib.rc_context(RC)  # a decorator for every function that draws


def figure_of(width: float, height: float) -> Figure:
    """Return an empty figure of so many points, whose parts find their own places."""
    return Figure(figsize=(width / 72, height / 72), layout="constrained")


def write(
    axes: Axes,
    words: str,
    place: tuple[float, float],
    offset: tuple[float, float],
    coordinates: Any = "axes fraction",
    **style: Any,
) -> None:
    """Write words so many points right of and above a place, in the axes or beside them."""
    axes.annotate(words, place, offset, xycoords=coordinates, textcoords="offset points", **style)


def label_ends(
    axes: Axes, ends: Sequence[tuple[str, float, Stroke]], width: float, height: float
) -> None:
    """Write each line's name beside its end, joined to it by a piece of the line.

    Args:
        axes: the lines' axes, with their limits set.
        ends: the name, the last y and the stroke of each line.
        width: about the width of the axes in points.
        height: about their height.
    """
    low, high = axes.get_ylim()
    apart = LABEL_HEIGHT / height * (high - low)
    places = spread_out([y for _, y, _ in ends], apart, low, high)
    beside = axes.get_yaxis_transform()  # x: 0 to 1 across the axes; y: as the data
    for (name, y, stroke), place in zip(ends, places, strict=True):
        xs = [1.0, 1.0 + LEADER / width]
        leader = Line2D(xs, [y, place], color=stroke.colour, linestyle=stroke.linestyle)
        leader.set(transform=beside, clip_on=False, linewidth=1.4)
        axes.add_artist(leader)
        style = {"va": "center", "color": stroke.colour, "weight": "bold", "gid": "name"}
        write(axes, name, (xs[1], place), (4, 0), beside, **style)


def to_svg(
    figure: Figure, title: str, description: str, hints: Mapping[str, str] | None = None
) -> str:
    """Return a figure as SVG with words for whoever cannot see it, the same bytes every time.

    An artist's `gid` becomes the class of its element.

    Args:
        figure: what to draw.
        title: what it is.
        description: what it shows.
        hints: by `gid`, what is shown where a pointer rests on the artist.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r' transform="rotate\(-0 [^"]*"', "", drawn)
    drawn = re.sub(r" ?font-family: [^;\"]*;?", "", drawn)
    drawn = re.sub(r' (x|y|d)="([^"]*)"', _rounded, drawn)
    drawn = re.sub(r"\n\s*", "\n", drawn)
    drawn = re.sub(r'<g id="[^"]*"/>\n', "", drawn)
    while drawn != (drawn := re.sub(r'<g id="[^"]*">\n</g>\n', "", drawn)):
        pass  # a group may hold nothing but empty groups

    def named(group: re.Match[str]) -> str:
        name = group[1]
        hint = f"<title>{escape(hints[name])}</title>" if hints and name in hints else ""
        return ("<g>" if re.fullmatch(r".*_\d+", name) else f'<g class="{escape(name)}">') + hint

    drawn = re.sub(r'<g id="([^"]*)">', named, drawn)
    head = f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{SHEET}</style>"
    opening, rest = drawn.split(">", 1)
    return f'{opening} role="img" class="figure">{head}{rest}'.replace('pt"', '"', 2)


def _rounded(attribute: re.Match[str]) -> str:
    """Write a place or a path in tenths of a point; every point of a path from the one before."""
    name, value = attribute.groups()
    if name != "d":
        return f' {name}="{float(value):.1f}"'
    if "C" in value:
        return f' d="{" ".join(value.split())}"'
    written, start, at = "", (0, 0), (0, 0)
    for command, x, y in re.findall(r"([MLz])(?: (\S+) (\S+))?", value):
        if command == "z":
            written, at = f"{written}z", start
            continue
        to = round(float(x) * 10), round(float(y) * 10)
        # After an m, every further pair is a line from the point before.
        written += "m" if command == "M" else " "
        written += f"{(to[0] - at[0]) / 10:g} {(to[1] - at[1]) / 10:g}"
        start, at = to if command == "M" else start, to
    return ' d="{}"'.format(re.sub(r"(?<!\d)0\.", ".", written).replace(" -", "-"))


def _sheet() -> str:
    """The fonts, and the dark colours in the place of the light ones."""
    rules = "".join(
        f'svg.figure [style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    text = f"svg.figure text{{font-family:{FONT};font-variant-numeric:tabular-nums}}"
    return f"{text}@media (prefers-color-scheme:dark){{{rules}}}"


SHEET = _sheet()
