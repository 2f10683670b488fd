"""Make the table of docs/why.md from stored figures of the demo, and measure those anew.

`python -m docs.generate.demo` runs the part of the demo about Cloud Storage, which takes 15 seconds, and writes its
figures beside this file. They are the same for the same seed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from docs.generate.markdown import between, table
from examples.demo import storage
from examples.demo.checker import Score

FIGURES = Path(__file__).parent / "demo.json"
SEED, EACH = 7, 20
_MARK = "<!-- {} demo: `python -m docs.generate.demo` measures it, `make reference` writes this table -->"
BEGIN, END = _MARK.format("begin"), _MARK.format("end")
_CONTENDERS = {"none": "no retries", "naive": "a blind loop", "forbear": "forbear"}


def filled(page: str) -> str:
    """Return the text of a page with its table of the demo made anew; raises ValueError if it has no place for one."""
    return between(page, BEGIN, END, _lines())


@cache
def scores() -> Mapping[str, Score]:
    """Return the stored scores of the contenders by name."""
    return {name: Score(**score) for name, score in json.loads(FIGURES.read_text(encoding="utf-8")).items()}


def measured() -> str:
    """Run the demo and return the stored form of its figures."""
    results = {name: asdict(score) for name, score, _ in storage.compare(SEED, EACH, lambda _: None)}
    return (
        json.dumps({name: {**score, "counts": dict(score["counts"])} for name, score in results.items()}, indent=1)
        + "\n"
    )


def _lines() -> Iterator[str]:
    findings = [*next(iter(scores().values())).counts]
    rows = (
        (_CONTENDERS[name], *map(str, score.counts.values()), str(score.requests)) for name, score in scores().items()
    )
    yield from table(("", *findings, "requests"), rows)


if __name__ == "__main__":
    FIGURES.write_text(measured(), encoding="utf-8")
