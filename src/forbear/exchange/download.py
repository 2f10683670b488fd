"""Download: the body of a GET that broke halfway goes on where it stopped or not at all; two replies are never mixed.

Where the reply says of which object it is, the rest is asked for with `Range`. Otherwise, as long as little was read,
the whole is asked for again and must begin with the very bytes that were handed out: then what the caller gets is the
second reply to the letter. It sends nothing itself.
"""

from forbear.core.decide import Reason, Stop
from forbear.core.verdict import TRANSIENT, Kind
from forbear.exchange.send import ORIGINAL, Send
from forbear.http import preconditions, ranges
from forbear.http.ranges import Unresumable
from forbear.http.status import reason
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.core.verdict import Verdict
    from forbear.exchange.exchange import Exchange

_KEPT = 1024 * 1024
"""How much of a body is kept to be compared with a second reply, in bytes."""

_SIGNED = ("X-Goog-Signature=", "Signature=", "X-Amz-Signature=")
"""Marks of a signed URL, to whose query nothing may be added."""


class Download:
    """The body of one reply to `exchange`, whose `status` and `headers` (lower-case names) the caller has seen.

    A break starts a run of its own under the exchange's policy, and progress since the last break starts it anew: a
    long download may break often, as long as it gets on.
    """

    __slots__ = ("send", "_exchange", "_status", "_headers", "_received", "_kept", "_repeated", "_part", "_run",
                 "_broke_at", "_why_not")  # fmt: skip

    def __init__(self, exchange: "Exchange", status: int, headers: "Mapping[str, str]") -> None:
        self.send = ORIGINAL
        self._exchange = exchange
        self._status = status
        self._headers = headers
        self._received = 0
        self._kept: list[bytes] | None = []
        self._repeated: bytes | None = None
        self._part: ranges.Part | None = None
        self._run: Run | None = None
        self._broke_at = -1
        self._why_not: str | None = None

    def received(self, chunk: bytes) -> None:
        """Count a chunk that goes to the caller."""
        self._received += len(chunk)
        if self._kept is not None:
            if self._received <= _KEPT:
                self._kept.append(chunk)
            else:
                self._kept = None

    def finished(self) -> None:
        """Tell the policy's listener and budget if the body had broken and is whole all the same."""
        if self._run is not None:
            self._run.succeeded()

    def broken(self, error: Exception, verdict: "Verdict") -> float | None:
        """Seconds to wait before `send`, None to let `error` out: the first break since there was progress."""
        exchange = self._exchange
        if self._run is None or self._received > self._broke_at:
            name = f"{exchange.operation} (body)"
            self._run = Run(exchange.policy, name, exchange.runtime, exchange.runtime.monotonic())
            self._broke_at = self._received
        if self._why_not is None:
            self._why_not = self._plan()
        blocked = None if self._why_not is None else Stop(Reason.BODY, f"the rest is out of reach: {self._why_not}")
        name, text = type(error).__qualname__, str(error)
        return self._run.after(verdict, error, name, text, repeatable=True, blocked=blocked)

    def refused(self, status: int, headers: "Mapping[str, str]") -> "Verdict | None":
        """What a reply to `send` means, None if its body goes on with this one."""
        exchange = self._exchange
        verdict = exchange.service.verdict(exchange.judgement, status, headers)
        if verdict is not None and verdict.kind is not Kind.PERMANENT:
            return verdict
        try:
            if self._part is not None:
                ranges.verify(self._part, self._received, status, headers)
            else:
                self._verify_whole(status, headers)
        except Unresumable as why:
            self._why_not = str(why)
            return TRANSIENT
        return None

    @property
    def repeats(self) -> bool:
        """Whether the reply begins with bytes that the caller has, to be handed to `repeat`."""
        return bool(self._repeated)

    def repeat(self, chunk: bytes) -> bytes:
        """What `chunk` has beyond the bytes that the caller has; an empty one means that the reply ended too early.

        Raises Unresumable if it has others.
        """
        expected = self._repeated or b""
        shared = min(len(chunk), len(expected))
        if not chunk or chunk[:shared] != expected[:shared]:
            self._why_not = "the second reply begins with other bytes"
            raise Unresumable(self._why_not)
        self._repeated = expected[shared:]
        return chunk[shared:]

    def _plan(self) -> str | None:
        """Set what to send next; the reason if there is nothing that could be."""
        target = self._exchange.request.target
        try:
            part = ranges.begin("GET", self._status, self._headers)
        except Unresumable as why:
            if self._kept is None:
                return str(why)
            self._part, self._repeated, self.send = None, b"".join(self._kept), ORIGINAL
            return None
        query = ""
        if part.generation is not None and not any(mark in target for mark in _SIGNED):
            pinned = preconditions.value(preconditions.split(target)[1], "generation")
            query = "" if pinned else f"generation={part.generation}"
        self._part, self.send = part, Send(part.headers(self._received), query)
        return None

    def _verify_whole(self, status: int, headers: "Mapping[str, str]") -> None:
        first = self._headers
        if status != self._status:
            raise Unresumable(f"the server answered {reason(status)} when asked again")
        for name in ("etag", "x-goog-generation", "content-encoding", "content-length", "content-range"):
            if first.get(name) != headers.get(name):
                raise Unresumable(f"the second reply has another {name} than the first")
