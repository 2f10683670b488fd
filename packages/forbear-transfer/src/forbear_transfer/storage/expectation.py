"""The guess whether the targets of uploads exist, which saves requests: a look at each target, or data sent twice."""

_MOST_LOOKUPS = 16
"""The number of targets in a row that must be absent before uploads guess again. At most about one file in forty is
then sent twice, however many of the targets exist."""


class Expectation:
    """Decides whether an upload in one request first looks up its target; all uploads of a Storage share it.

    An upload that guesses that its target is absent takes one request, but sends its data twice if the guess is wrong.
    The first upload guesses. Uploads that begin before its result is known look up their targets, so that a wrong guess
    costs at most one upload. After a correct guess, all further uploads guess as well. After a target that exists, they
    look up theirs until 16 in a row were absent.
    """

    __slots__ = ("_first", "_is_allowed", "_lookups")

    def __init__(self) -> None:
        self._first = True
        self._is_allowed = True
        self._lookups = 1

    def asks(self) -> bool:
        """Return whether an upload that begins now looks up its target first; the first upload does not."""
        first, self._first = self._first, False
        return self._is_allowed and self._lookups > 0 and not first

    def met(self, *, there: bool) -> None:
        """Record whether a target exists (`there`): if so, uploads look up theirs until 16 in a row were absent."""
        self._lookups = _MOST_LOOKUPS if there else max(self._lookups - 1, 0)

    def forbid(self) -> None:
        """Record that this user may not look up objects, so uploads never do: some may only create them."""
        self._is_allowed = False
