"""Responses on which forbear gave up: the error of their `raise_for_status()` has the report and the note."""

from functools import cache
from typing import Any

from forbear.core.report import attach, report_on


class GivenUp:
    """The base of such responses, before the library's own class."""

    def raise_for_status(self) -> Any:
        """Do what the library's response does; its error gets the report and the note."""
        above: Any = super()
        try:
            return above.raise_for_status()
        except Exception as error:
            report = report_on(self)
            if report is not None:
                attach(error, report)
            raise


@cache
def make_given_up(kind: type[Any]) -> type[Any]:
    """Return a class of responses like `kind` with the base `GivenUp`; pickle does not find it."""
    return type(kind.__name__, (GivenUp, kind), {"__module__": kind.__module__})
