"""The pictures of docs/pictures: terminals in which commands of forbear ran, and the figures of the demo as bars.

All of them are made anew by `make reference`, and a test compares them, so that none can go stale. Waits take no real
time, and durations are the same on every machine.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generate import demo
from docs.generate.terminal import WIDTH, command, drawn, output
from examples.demo.show import show_storage
from forbear.testing import virtual_time

FOLDER = Path(__file__).parents[1] / "pictures"

_EXPLAIN = "forbear explain DELETE 'https://storage.googleapis.com/storage/v1/b/my-bucket/o/a?ifGenerationMatch=7'"
_SIMULATE = "forbear simulate run --compare budget=brooker"
_CP = "forbear cp -r --embedded --faults 4 photos gs://demo/"
_LIVE = re.compile(r"^.*\x1b\[\?25h", re.DOTALL)  # all that a progress display shows before it ends
_MOVES = re.compile(r"\r|\x1b\[\d*[AK]")
_SECONDS = re.compile(r"in \d+\.\d s")


def _shown(name: str, line: str, width: int = WIDTH) -> str:
    return drawn(name, line, output(command(line), width), width)


def _copied() -> str:
    with TemporaryDirectory() as folder, chdir(folder), virtual_time(seed=1):
        Path("photos").mkdir()
        for number in range(1, 5):
            Path("photos", f"{number}.jpg").write_bytes(bytes(number * 1000))
        printed = output(command(_CP), WIDTH)
    return drawn("cp", _CP, _SECONDS.sub("in 1.3 s", _MOVES.sub("", _LIVE.sub("", printed))), WIDTH)


def _demonstrated() -> str:
    scores = demo.scores()
    return drawn("demo", "make demo", output(partial(show_storage, scores, demo.SEED), WIDTH), WIDTH)


PICTURES: dict[str, Callable[[], str]] = {
    "cp": _copied,
    "demo": _demonstrated,
    "explain": partial(_shown, "explain", _EXPLAIN, 112),
    "simulate": partial(_shown, "simulate", _SIMULATE),
    "why": lambda: "\n".join(bars()) + "\n",
}
"""The pictures by their names, each with the function that draws it."""

_COLOURS = {
    "completed": "#7fb685",
    "failed": "#d9d9d9",
    "lost": "#f2b134",
    "duplicated": "#ed553b",
    "corrupted": "#8b1e3f",
}
_NAMES = {"none": "no retries", "naive": "a blind loop", "forbear": "forbear"}
_LEFT, _ROW, _BAR = 110, 44, 600


def bars() -> Iterator[str]:
    """Yield the lines of a picture with a bar for each contender of the demo, by what became of its operations."""
    scores = demo.scores()
    height = _ROW * len(scores) + 60
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img"'
    yield ' font-family="sans-serif" font-size="14">'
    yield "<title>What became of 500 operations</title>"
    yield f'<rect width="760" height="{height}" rx="6" fill="#fdfdfb" stroke="#d0d7de"/>'
    for row, (name, score) in enumerate(scores.items()):
        top, left, total = 14 + row * _ROW, float(_LEFT), sum(score.counts.values())
        yield f'<text x="{_LEFT - 10}" y="{top + 21}" text-anchor="end" fill="#24292e">{_NAMES[name]}</text>'
        for finding, colour in _COLOURS.items():
            count = score.counts[finding]
            width = _BAR * count / total
            yield (
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="30" fill="{colour}">'
                f"<title>{count} {finding}</title></rect>"
            )
            if width > 20:
                yield f'<text x="{left + width / 2:.1f}" y="{top + 20}" text-anchor="middle" fill="#111">{count}</text>'
            left += width
    for number, (finding, colour) in enumerate(_COLOURS.items()):
        left = _LEFT + number * 122
        yield f'<rect x="{left}" y="{height - 32}" width="14" height="14" fill="{colour}"/>'
        yield f'<text x="{left + 20}" y="{height - 20}" fill="#24292e">{finding}</text>'
    yield "</svg>"
