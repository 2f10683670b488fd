"""Session: a resumable session from the client's side, as a state machine: what to send next, given the last reply.

It sends nothing, reads nothing and knows no clock. The rule: after any failure whose outcome is unknown the server is
asked how much it has; data is never sent again blindly, and a new session begins only where the old one is gone.
"""

import re
from collections.abc import Mapping
from enum import Enum

GRAIN = 256 * 1024
"""All chunks but the last are multiples of this."""

LAST = 8 * 1024 * 1024
"""The end of an upload, at most so many bytes, goes by itself, with the checksum of the whole."""

_RANGE = re.compile(r"bytes=0-(\d{1,18})")
_SETBACKS = 16


class Step(Enum):
    """What to send next."""

    START = "a request for a session"
    ASK = "the question how much of it there is"
    SEND = "bytes, from `stored` on"


class Turn(Enum):
    """What a reply comes to."""

    PROGRESS = "more is there than before"
    NOW = "go on with the next step"
    WAIT = "nothing was gained: go on after a while, for as long as retries lasts"
    DONE = "the object is there"
    REFUSED = "the condition of the upload does not hold"
    FINAL = "this is the end of it"


class Session:
    """One upload of `size` bytes (None until its end is known).

    `step` is what to send next and `stored` how much the server has. `in_doubt` tells that the end was sent and that
    the reply to it was lost: the object may be there. `why` is what is wrong where it is not the status that says so.
    `refused` tells that the server has refused it (400, 412) and taken no more of it since; `unsure` that the server
    calls it done before its end was sent.
    """

    def __init__(self, size: int | None, *, resumed: bool = False) -> None:
        self.size = size
        self.step = Step.ASK if resumed else Step.START
        self.stored = 0
        self.in_doubt = resumed
        self.why: str | None = None
        self.unsure = False
        self._sent: int | None = None if resumed else 0  # nobody knows what another process has sent
        self._ending = False
        self._best = 0
        self._setbacks = 0
        self.refused = False

    def started(self) -> None:
        """There is a new session, with nothing in it."""
        self.step, self.stored, self._sent, self.refused = Step.SEND, 0, 0, False

    def sending(self, end: int) -> None:
        """The bytes from `stored` to `end` are about to be sent."""
        self._sent = max(self._sent or 0, end)
        self._ending = end == self.size

    def broken(self) -> None:
        """A chunk or a question had no reply, or none that tells: whatever was sent may have arrived."""
        self.step = Step.ASK
        self.in_doubt = self.in_doubt or self._ending

    def replied(self, status: int, headers: Mapping[str, str], *, transient: bool) -> Turn:
        """What follows from a reply to a chunk or a question; `transient` says what other statuses mean."""
        match status:
            case 200 | 201:
                self.unsure = self._sent is not None and (self.size is None or self._sent < self.size)
                return Turn.DONE
            case 308:
                return self._told(headers.get("range"))
            case 404 | 410:
                self.step, self.stored, self._sent = Step.START, 0, 0
                return self._set_back(Turn.NOW)
            case 400 | 412 if not self.refused:
                # It may only look so, after an attempt that still went on at the server, or had done it all already.
                self.step, self.refused = Step.ASK, True
                return Turn.NOW
            case 412:
                return Turn.REFUSED
            case _ if transient:
                self.broken()
                return Turn.WAIT
            case _:
                return Turn.FINAL

    def start_over(self) -> Turn:
        """What the session holds is wrong: another one is needed."""
        self.step, self.stored, self._sent = Step.START, 0, 0
        return self._set_back(Turn.NOW)

    def _told(self, text: str | None) -> Turn:
        """What follows from the server's word on how much it has."""
        found = None if text is None else _RANGE.fullmatch(text.strip())
        if text is not None and found is None:
            self.broken()
            return Turn.WAIT
        have = 0 if found is None else int(found[1]) + 1
        known = self._sent if self._sent is not None else self.size
        if known is not None and have > known:
            self.why = f"the server says that it has {have} bytes, after {known} were sent"
            return Turn.FINAL
        before, self.stored = self.stored, have
        asked, self._sent = self.step is Step.ASK, known
        self.step = Step.ASK if have == self.size else Step.SEND
        if have > before:
            self.refused = False
            if have > self._best:
                self._best, self._setbacks = have, 0
            return Turn.PROGRESS
        if have < before:
            return self._set_back(Turn.WAIT)
        return Turn.NOW if asked and self.step is Step.SEND else Turn.WAIT

    def _set_back(self, turn: Turn) -> Turn:
        """So much is lost; a server that keeps losing it will never have it all."""
        self._setbacks += 1
        if self._setbacks > _SETBACKS:
            self.why = f"the server has lost what it had {_SETBACKS} times"
            return Turn.FINAL
        return Turn.WAIT if self._setbacks > 1 else turn


def chunk_end(first: int, size: int | None, chunk_size: int) -> int:
    """Where the chunk that begins at byte `first` ends."""
    full = (first + chunk_size) // GRAIN * GRAIN
    if size is None:
        return full
    last = max(0, -((min(LAST, chunk_size) - size) // GRAIN) * GRAIN)
    return size if first >= last else min(full, last)
