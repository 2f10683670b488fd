"""Long tables: all rows as one test, which costs less than a test each, or only a few of them in `make test`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def sampled(values: Iterable[Any], few: int) -> list[Any]:
    """Parameters of a test: the first few of them for `make test`, all for `make soak`."""
    every = list(values)
    return [*every[:few], *(pytest.param(value, marks=pytest.mark.soak) for value in every[few:])]


def each_once(first: Sequence[Any], second: Sequence[str]) -> list[Any]:
    """All pairs of two lists, as parameters: `make soak` tests all, `make test` each value of both once or more."""
    return [
        pytest.param(
            one,
            other,
            id=f"{other}-{getattr(one, 'name', one)}",
            marks=() if i == j % len(first) or j == i % len(second) else pytest.mark.soak,
        )
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]


def for_each(rows: Iterable[object], name: str) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Run a test with every one of `rows`, a tuple as several arguments, and report all that fail.

    `name` is a format string: {0} is the first argument, {0.id} its attribute.
    """
    every = list(rows)

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def run() -> None:
            failures = list[Exception]()
            for row in every:
                arguments = row if type(row) is tuple else (row,)
                try:
                    test(*arguments)
                except Exception as error:
                    error.add_note(f"for {name.format(*arguments)}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} rows fail", failures)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    return decorate
