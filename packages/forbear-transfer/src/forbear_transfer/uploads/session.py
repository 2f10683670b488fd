"""The client's side of a resumable upload session, as a state machine: it decides what to send after each response.

It does no I/O; the module `resumable` does. After a failure with an unknown outcome the next step is a query for the
bytes that the server has; data is never sent again blindly. A new session begins only when the old one is gone or has
wrong bytes.
"""

import re
from collections.abc import Mapping
from enum import Enum

GRAIN = 256 * 1024
"""Every chunk but the last ends at a multiple of this number of bytes."""

LAST = 8 * 1024 * 1024
"""The last chunk has at most this number of bytes. It carries the checksum of the whole upload."""

_RANGE = re.compile(r"bytes=0-(\d{1,18})")
_MAX_SETBACKS = 16


class Step(Enum):
    """The next thing that the client sends: a request for a new session, a query or a chunk of data."""

    START = "a request for a new session"
    ASK = "a query: how many bytes does the server have"
    SEND = "a chunk of data, from byte `stored` on"


class Reaction(Enum):
    """The reaction of the client to a response."""

    PROGRESSED = "the server has more bytes: take the next step"
    CONTINUE = "take the next step"
    WAIT = "nothing was gained: wait, then take the next step, unless the policy's limits are reached"
    DONE = "the object is made"
    REFUSED = "the precondition does not hold: look at the target"
    FAIL = "the upload has failed"


class SessionState:
    """The state of the upload of `size` bytes (None until the end of a stream is known).

    - `step` is what to send next, and `stored` the number of bytes that the server has.
    - `in_doubt` is true once the last byte was sent and the response to it lost: the object may be made. It is true
      from the start for a resumed session.
    - `refused` is true if the server has refused the upload (400, 412) and taken no bytes since.
    - `unsure` is true if the server reported success before the last byte was sent.
    - `reason` explains a failure if the status of the response does not.

    With `resumed`, the upload continues a session of another process.
    """

    def __init__(self, size: int | None, *, resumed: bool = False) -> None:
        self.size = size
        self.step = Step.ASK if resumed else Step.START
        self.stored = 0
        self.in_doubt = resumed
        self.refused = False
        self.unsure = False
        self.reason: str | None = None
        self._sent: int | None = None if resumed else 0  # unknown what another process has sent
        self._sends_last = False
        self._most_stored = 0
        self._setbacks = 0

    def started(self) -> None:
        """Record that a new session has begun, which has no bytes and has refused nothing; data is sent next."""
        self.step, self.stored, self._sent, self.refused = Step.SEND, 0, 0, False

    def sending(self, end: int) -> None:
        """Record that the bytes from `stored` up to `end` (not included) are about to be sent."""
        self._sent = max(self._sent or 0, end)
        self._sends_last = end == self.size

    def interrupted(self) -> None:
        """Record that a chunk or query had no usable response: the next step is a query.

        If the chunk sent last has the last byte, the object may be made (`in_doubt`).
        """
        self.step = Step.ASK
        self.in_doubt = self.in_doubt or self._sends_last

    def start_over(self) -> Reaction:
        """Give up the session, which is gone or holds wrong bytes; the next step begins another one.

        Return CONTINUE for the first loss of stored bytes, WAIT for later ones, and FAIL after over 16 without new
        progress.
        """
        self.step = Step.START
        return self._set_back(Reaction.CONTINUE)

    def responded(self, status: int, headers: Mapping[str, str], *, transient: bool) -> Reaction:
        """Record the response to a chunk or query, and return the client's reaction.

        200 and 201 mean DONE; 308 states the stored bytes; 404 and 410 begin a new session. The first 400 or 412 leads
        to a query, another 412 to REFUSED. Any other status, and another 400, leads to WAIT and a query if it is
        `transient` (worth another attempt), else to FAIL.
        """
        match status:
            case 200 | 201:
                self.unsure = self._sent is not None and (self.size is None or self._sent < self.size)
                return Reaction.DONE
            case 308:
                return self._record_stored(headers.get("range"))
            case 404 | 410:
                return self.start_over()
            case 400 | 412 if not self.refused:
                # An earlier attempt may be still in progress at the server, or have succeeded. So ask once.
                self.step, self.refused = Step.ASK, True
                return Reaction.CONTINUE
            case 412:
                return Reaction.REFUSED
            case _ if transient:
                self.interrupted()
                return Reaction.WAIT
            case _:
                return Reaction.FAIL

    def _record_stored(self, range_header: str | None) -> Reaction:
        """Record a 308 response, whose Range header says which bytes the server has (None: none); return the reaction.

        That is PROGRESSED if the server has more bytes than before, and WAIT or FAIL if it has fewer. FAIL if it has
        more than were sent. If it has as many, CONTINUE after a query whose next step is a chunk, else WAIT. An invalid
        header means WAIT and a query.
        """
        match = None if range_header is None else _RANGE.fullmatch(range_header.strip())
        if range_header is not None and match is None:
            self.interrupted()
            return Reaction.WAIT
        stored = 0 if match is None else int(match[1]) + 1
        sent = self._sent if self._sent is not None else self.size
        if sent is not None and stored > sent:
            self.reason = f"the server says that it has {stored} bytes, after {sent} were sent"
            return Reaction.FAIL
        before, self.stored = self.stored, stored
        queried, self._sent = self.step is Step.ASK, sent
        self.step = Step.ASK if stored == self.size else Step.SEND
        if stored > before:
            self.refused = False
            if stored > self._most_stored:
                self._most_stored, self._setbacks = stored, 0
            return Reaction.PROGRESSED
        if stored < before:
            return self._set_back(Reaction.WAIT)
        return Reaction.CONTINUE if queried and self.step is Step.SEND else Reaction.WAIT

    def _set_back(self, reaction: Reaction) -> Reaction:
        """Count a loss of stored bytes; return `reaction` for the first one, WAIT for later ones, FAIL after over 16.

        The count starts anew when the server has more bytes than ever before.
        """
        self._setbacks += 1
        if self._setbacks > _MAX_SETBACKS:
            self.reason = f"the server has lost stored bytes {_MAX_SETBACKS} times"
            return Reaction.FAIL
        return Reaction.WAIT if self._setbacks > 1 else reaction


def chunk_end(first: int, size: int | None, chunk_size: int) -> int:
    """Return the offset at which the chunk that begins at byte `first` ends (not included).

    `size` is the size of the upload, None if it is unknown. Every chunk but the last ends at a multiple of 256 KiB. The
    last one is at most 8 MiB (or `chunk_size`, if that is smaller) long.
    """
    full = (first + chunk_size) // GRAIN * GRAIN
    if size is None:
        return full
    last = max(0, -((min(LAST, chunk_size) - size) // GRAIN) * GRAIN)
    return size if first >= last else min(full, last)
