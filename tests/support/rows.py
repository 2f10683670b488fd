"""Tests of every row of a long table, each as one test: to pytest a test costs more than most rows do."""

from collections.abc import Callable, Iterable


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
