"""`PendingGrant`: one ask for a retry of the shared bucket, from the decision of a run to the end of its backoff."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    class AskedShare(Protocol):
        """The protocol of the `ProcessShare` that was asked."""

        def look(self, sent: "SentCommand") -> bool | None:
            """Return the answer to `sent`, None if it has not arrived."""
            ...

        def wait(self, seconds: float) -> None:
            """Wait until there may be an answer, for at most so many real seconds."""
            ...

        def end(self, sent: "SentCommand") -> bool:
            """Return whether the retry is granted at the end of the backoff."""
            ...

        def leave(self, sent: "SentCommand") -> None:
            """Note that the run of `sent` has ended without it."""
            ...


SLICE = 0.001
"""The longest single wait in seconds: another thread may take the answer off the connection meanwhile."""


class SentCommand:
    """A command on its way: `sent` at a monotonic time, for a retry or (`pays` only) without one.

    `answer` is None until it is known; a lost ask is a refusal. It is `overdue` once its run has stopped looking for
    it. A run that ended without the answer sets `left`: a grant then makes the own token whole.
    """

    __slots__ = ("answer", "left", "overdue", "pays", "sent")

    def __init__(self, sent: float, *, pays: bool = False) -> None:
        self.sent = sent
        self.pays = pays
        self.answer: bool | None = None
        self.overdue = self.left = False


class PendingGrant:
    """The answer of the shared bucket to one run; see `forbear.run.late.LateAnswer` for its methods."""

    __slots__ = ("_share", "_command")

    def __init__(self, share: "AskedShare", sent: SentCommand) -> None:
        self._share = share
        self._command = sent

    def look(self) -> bool | None:
        """Return whether the retry is granted, None if there is no answer yet; never wait."""
        return self._share.look(self._command)

    def wait(self, seconds: float) -> bool | None:
        """Return the answer as soon as it is there, None after so many real seconds."""
        until = time.monotonic() + seconds
        while (answer := self.look()) is None:
            left = until - time.monotonic()
            if left <= 0:
                self._command.overdue = True
                return None
            self._share.wait(min(left, SLICE))
        return answer

    def end(self) -> bool:
        """Return whether the retry is granted, now that its backoff has ended; an own token grants it, too."""
        return self._share.end(self._command)

    def give_up(self) -> None:
        """Note that the run has ended; a grant becomes own credit."""
        self._share.leave(self._command)
