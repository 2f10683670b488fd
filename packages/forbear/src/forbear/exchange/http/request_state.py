"""`RequestState`: whether one HTTP request may be executed twice, and why; and what is kept of a request that ended.

The port of a request is its entry in the ledger, which saves an object. A request with a large body is judged when it
has ended, and an `EndedRequest` takes the port's place, so that no body is kept. `forbear.run.ledger` says what entries
are for.
"""

from collections.abc import Callable, Sequence

from forbear.core.events import Operation
from forbear.core.service import Judgement, cure_for, why_not
from forbear.evidence.sent import Sent
from forbear.exchange.call_state import FORBIDDEN
from forbear.exchange.http.send import ChunkSession
from forbear.http.api import IdempotencyKey
from forbear.http.request import Request, method_label
from forbear.http.vouch import Vouch, apply_vouch, option_for
from forbear.policy import Policy
from forbear.run.judge_slot import RunContext
from forbear.run.vouching import is_vouched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.http.request import HttpService


class RequestState:
    """One request and its safety, judged when it is first needed: most requests succeed at once.

    `describe` returns the request in the form to classify. It must not refer to this object: that would make each
    request a cycle for the garbage collector. `key` is the header by which the API drops duplicates, None if the
    request does not carry one. `vouch` is the word of the adapter's user.
    """

    __slots__ = ("policy", "service", "_describe", "_judgement", "_key", "_request", "_session", "_vouch")

    cure: str | None = None
    """The words that say what to do instead of vouching, where the adapter takes no such word."""

    def __init__(
        self,
        policy: Policy,
        service: "HttpService",
        describe: Callable[[], Request],
        key: IdempotencyKey | None,
        vouch: Vouch,
    ) -> None:
        self.policy = policy
        self.service = service
        self._describe = describe
        self._key = key
        self._vouch = vouch
        self._request: Request | None = None
        self._judgement: Judgement | None = None
        self._session: ChunkSession | None = None  # the session of a chunk that must not be sent again blindly

    @property
    def request(self) -> Request:
        """The caller's request, reduced to what decides its safety; made when it is first read, and kept."""
        if self._request is None:
            self._request = self._describe()
        return self._request

    @property
    def judgement(self) -> Judgement:
        """The safety of the request, as its service judges it or the adapter's user vouches for it; kept once made."""
        if self._judgement is None:
            self._judgement = apply_vouch(self.service.classify(self.request), self.request, self._vouch)
            if self._judgement.session and not self._judgement.repeatable:
                self._session = ChunkSession.of(self.request)
        return self._judgement

    @property
    def repeatable(self) -> bool:
        """True if the request may be executed twice: by judgement, token or the user's word, and by the policy."""
        return self._may_repeat and (self._is_proven or self.vouched)

    @property
    def vouched(self) -> bool:
        """True if only the user's word makes the request repeatable: the adapter's options, or a scope that is open."""
        judgement = self.judgement
        if judgement.vouched or self._is_proven:
            return judgement.vouched
        return judgement.refused is None and not judgement.session and is_vouched(self.request)

    @property
    def _is_proven(self) -> bool:
        """True if the judgement, or the API's handling of the request's key, allows that it is executed twice."""
        judgement = self.judgement
        return judgement.repeatable or (self._key is not None and judgement.refused is None)

    @property
    def _until(self) -> float | None:
        """The seconds after which the API may have forgotten the key by which alone the request may be repeated.

        None if it needs no key.
        """
        if self._key is None or self.judgement.repeatable or is_vouched(self.request):
            return None
        return self._key.span

    @property
    def _may_repeat(self) -> bool:
        """True unless the policy forbids to repeat what may have been executed, by `repeatable=False`."""
        return self.policy.repeatable is not False

    @property
    def unsafe(self) -> str:
        """The reason why the request may not be executed twice, with what would allow it: conditions or a vouch."""
        judgement = self.judgement
        if not self._may_repeat:
            return f"{judgement.operation or 'the request'} {FORBIDDEN}"
        why = why_not(judgement, "the request")
        if judgement.refused is not None or judgement.conditions or judgement.session:
            return why
        return why + cure_for(judgement, option_for(self.request)) if self.cure is None else f"{why}; {self.cure}"

    @property
    def operation(self) -> str:
        """The name for reports and events: the policy's name, else the operation's id, else the method and the host."""
        request = self.request
        return (
            self.policy.name
            or self.judgement.operation
            or Operation(f"{request.method} {request.host}", method_label(request.method))
        )

    def _judge_by_table(self) -> None:
        """Judge the request by its service alone, unless it is judged: `safe` raised, and vouches for nothing."""
        if self._judgement is None:
            self._judgement = self.service.classify(self.request)


class EndedRequest:
    """The entry of a request that has ended, without its body."""

    __slots__ = ("is_done", "is_open", "number", "_sent", "_word")

    def __init__(self, port: "Any") -> None:
        from forbear.judges.facts import Word  # only if a run asks, or for large bodies

        self.number, self.is_done, self.is_open = port.number, port.is_done, port.is_open
        exchange = port.exchange
        request, key = exchange.request, exchange._key
        try:
            judgement, is_by_word = exchange.judgement, exchange.vouched
        except Exception:  # of a function of the user, who then vouches for nothing
            judgement, is_by_word = exchange.service.classify(request), False
        span = key.span if key is not None and exchange._is_new_key else None
        self._sent = Sent("", "http", request.method, request.replace(body=None))
        self._word: Word = Word(judgement, vouched=is_by_word, apis=exchange._vouch.apis, automatic=span)

    def judge(self, context: RunContext | None, reads: Sequence[object], *, done: bool = False) -> Judgement:
        from forbear.judges.functions import judge_sent

        return judge_sent(self._sent, context, reads, done=done or self.is_done, word=self._word)
