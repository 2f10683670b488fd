"""A chart for the terminal: goodput and offered load over time, with the trigger shaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from forbear_simulate.cli.texts import time_text

WIDTH, HEIGHT = 72, 10
_LEAST = 16  # columns of the narrowest chart
_LABEL = 8  # columns for the numbers left of the axis


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters of a chart: parts of a full cell from the lowest, excess load, trigger, and the lines."""

    parts: str
    excess: str
    shade: str
    axis: str
    tick: str
    line: str


UNICODE = Signs("▁▂▃▄▅▆▇█", "▒", "·", "│", "┤", "─")
ASCII = Signs("#", "+", ".", "|", "|", "-")


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of one chart: values per time bin of `step` seconds, and the trigger (begin, end) in seconds."""

    load: Sequence[float]
    goodput: Sequence[float]
    step: float
    trigger: tuple[float, float] | None

    @property
    def top(self) -> float:
        """The largest value that a chart shows: the mean of a column."""
        return max((*_columns(self.load, WIDTH), *_columns(self.goodput, WIDTH)))


def draw(curves: Curves, *, signs: Signs = UNICODE, top: float | None = None, room: int = _LABEL + WIDTH) -> list[Text]:
    """Return the lines of a chart, with an axis and a legend; `top` is the value of its top, None for that of a curve.

    A column is the mean of its bins. Goodput is filled; load above it is the attempts that do not succeed, and counts
    again what is retried. `room` is the width of the terminal: in a narrow one the chart is narrow, too, and each part
    of the legend has a line.
    """
    most = max(min(room - _LABEL, WIDTH), _LEAST)
    load, goodput = _columns(curves.load, most), _columns(curves.goodput, most)
    width, end = len(load), len(curves.load) * curves.step
    scale = HEIGHT / (top or curves.top or 1.0)
    begin, stop = curves.trigger or (end + 1, end + 1)
    shaded = {
        x for x in range(width) if (x + 1) / width * end > begin and x / width * end < max(stop, begin + end / width)
    }
    lines: list[Text] = []
    for row in range(HEIGHT - 1, -1, -1):
        number = _number((row + 1) / scale) if row in (HEIGHT - 1, HEIGHT // 2 - 1) else ""
        line = Text(f"{number:>{_LABEL - 2}} {signs.tick if number else signs.axis}")
        for x in range(width):
            line.append(*_cell(goodput[x] * scale - row, load[x] * scale - row, x in shaded, signs))
        lines.append(line)
    lines.append(Text(f"{'0':>{_LABEL - 2}} {signs.tick}{signs.line * width}"))
    lines.append(Text(" " * _LABEL + _times(width, end)))
    parts: list[Text] = []
    for sign, style, text in (
        (signs.parts[-1], "green", "goodput per second"),
        (signs.excess, "red", "attempts per second above it"),
        *([(signs.shade, "dim", "trigger")] if shaded else []),
    ):
        parts.append(Text.assemble((sign, style), f" {text}"))
    legend = Text(" " * _LABEL) + Text("   ").join(parts)
    return [*lines, legend] if len(legend) <= room else [*lines, *parts]


def _cell(goodput: float, load: float, shaded: bool, signs: Signs) -> tuple[str, str]:
    """Return the character and the style of a cell; the curves are in cells above its lower edge."""
    eighths = min(int(goodput * 8 + 0.5), 8)
    if eighths > 0 and (goodput >= 0.5 or load < 0.5 or goodput >= load):
        return signs.parts[eighths * len(signs.parts) // 8 - 1], "green"
    if load >= 0.5:
        return signs.excess, "red"
    return (signs.shade, "dim") if shaded else (" ", "")


def _columns(values: Sequence[float], width: int) -> list[float]:
    """Return the means of at most `width` equal parts of the values."""
    width = min(width, len(values))
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def _times(width: int, end: float) -> str:
    """Return the line of times below the axis: begin, quarters and end."""
    line = ""
    for quarter in range(5):
        text = time_text(end * quarter / 4)
        place = min(round(width * quarter / 4), max(width - len(text), 0))
        if place >= len(line) + bool(line):
            line = line.ljust(place) + text
    return line


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
