"""Expectation: whether the next upload in one request asks first what is at its target. It sends nothing.

An upload that guesses that nothing is there takes one request, but sends its data twice where it is wrong.
"""

_MOST_QUESTIONS = 16
"""How many answers in a row must be "nothing is there" before uploads guess again: so, however many of the targets are
there, about one in forty files at the most is sent twice."""


class Expectation:
    """A record of what is at the targets of uploads, shared by all uploads of one Storage.

    The first upload guesses. Those that begin before it has found out ask, so that a wrong guess costs no more than one
    upload; once it was right all others guess, too.
    """

    __slots__ = ("_first", "_is_allowed", "_questions")

    def __init__(self) -> None:
        self._first = True
        self._is_allowed = True
        self._questions = 1

    def asks(self) -> bool:
        """Return whether an upload that begins now asks first."""
        first, self._first = self._first, False
        return self._is_allowed and self._questions > 0 and not first

    def met(self, *, there: bool) -> None:
        """Learn whether something was at a target."""
        self._questions = _MOST_QUESTIONS if there else max(self._questions - 1, 0)

    def forbid(self) -> None:
        """Learn that this user may not ask: some may only create objects."""
        self._is_allowed = False
