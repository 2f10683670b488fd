"""`HttpCall`: what all ports share; the rest of the contract of an adapter is in `drive.py`, and async in `adrive.py`.

forbear.clients.requests is a model of an adapter.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, ClassVar

from forbear.core.check import INFINITY
from forbear.core.report import Report
from forbear.core.service import Judgement
from forbear.evidence.sent import UNEXECUTED
from forbear.exchange.call_state import Start
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.options import HttpOptions, new_token
from forbear.exchange.http.request_state import EndedRequest
from forbear.exchange.http.responses import CONTINUED, LOOK, SHOWN, is_read_at_once, is_shown, needs_reader
from forbear.exchange.http.send import Body, Fixed, Variation
from forbear.http.api import IdempotencyKey
from forbear.http.patterns import is_for_its_host
from forbear.http.request import READS, Request, identify, is_signed, join_headers
from forbear.run import ledger
from forbear.run.doubt import leave_in_doubt
from forbear.run.harm import is_used
from forbear.run.judge_slot import RunContext
from forbear.run.scope import has_open_scopes
from forbear.run.vouching import is_vouched
from forbear.waits import may_ask_in_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.exchange.http.settling import ReadBack
    from forbear.http.patterns import Origin
    from forbear.run.key_uses import AutomaticKey, SentKey


_MAYBE_EXECUTED = frozenset({408, 409, 423, 425, 429, 499})
"""Client errors after which a request may have been executed."""


class HttpCall(Start, ABC):
    """The base of all ports: one request, the moment it starts, and its exchange once an attempt has failed.

    It is the request's entry in the ledger, too; `number` is 0 for a request that is not entered.

    `plain` is True for a body in memory, which every attempt can send as it is. Set what `_target` reads before calling
    this constructor.

    A subclass has `_target`, `_scheme_and_port`, `_headers` and `_read_body`, and may use `_options`, `_method`,
    `_body`, `_token` and `_adjust`. These names are part of the contract, too.
    """

    __slots__ = ("automatic", "is_done", "is_open", "is_plain", "look", "number",
                 "_body", "_exchange", "_method", "_options", "_sent_key", "_token")  # fmt: skip

    _is_async: ClassVar[bool] = False
    """True for ports of `adrive`, which awaits the retry budget."""

    can_read_back: ClassVar[bool] = False
    """True for ports with `read_back` and `answer`: their adapters have the option `settle`."""
    look: "ReadBack | None"

    is_plain: bool
    """True if a first attempt that succeeds needs nothing from the exchange.

    That means a body in memory, and no token, no budget, no attempt timeout and no `on_result`.
    """

    automatic: "AutomaticKey | None"
    """The key that forbear made for this request."""
    _sent_key: "SentKey | None"
    """The requests of the attempt around with the key that the caller gave this one."""
    _body: Any
    """The result of `_read_body`, once an attempt has failed or the request is not plain."""
    _token: tuple[str, str] | None
    """A header and its value, for all attempts of a mutation."""

    def __init__(self, options: HttpOptions, method: str, *, plain: bool) -> None:
        super().__init__(awaits=self._is_async)
        self._options = options
        self._method = method
        self._exchange: Exchange | None = None
        self.automatic = self._sent_key = None
        self.look = None
        self.is_plain = plain and options.is_plain and (method in READS or not self._adds_token())

    @abstractmethod
    def _target(self) -> tuple[str, str]:
        """Return the host of the request, and its path and query as they go over the wire."""

    @abstractmethod
    def _scheme_and_port(self) -> tuple[str, int | None]:
        """Return the scheme of the request's URL, and its port, None for the scheme's default."""

    @abstractmethod
    def _headers(self) -> Mapping[Any, Any]:
        """Return the caller's headers; names are found in any case."""

    @abstractmethod
    def _read_body(self) -> Body:
        """Return the body of the request in a form that can be sent again, if that is possible."""

    @property
    def exchange(self) -> Exchange:
        """The exchange, that is, the request's state; made when it is first read, since most requests need none."""
        if self._exchange is None:
            self._exchange = self._open()
        return self._exchange

    def begin(self) -> None:
        """Count the first attempt in the retry budget; if that raises Throttled, nothing was sent with a key."""
        try:
            self.exchange.begin()
        except BaseException:
            if self.automatic is not None:
                self.automatic.take_back()
            self._take_back_own_key()
            raise

    def enter(self) -> None:
        """Enter the request in the ledgers of the runs around it, before it is sent, unless it only reads."""
        self.number = 0
        if not is_used[0]:
            return
        if self._method in READS:
            ledger.note_read(self._mark())
        else:
            self.is_done, self.is_open = False, True
            if self._options.vouch.apis:
                _ = self.exchange  # it looks at the key
            if has_open_scopes() and is_vouched(self.exchange.request):
                self.number = -1  # the scope may be closed when a run asks
            else:
                self.reports = ledger.enter(self)

    def end(self) -> None:
        """Count the end of an attempt in the retry budget; note an unknown outcome for a run around the request."""
        if self._exchange is not None:
            self._exchange.end()
            if self._options.settle is not None:
                from forbear.exchange.http.settling import leave_unknown

                leave_unknown(self._exchange)

    def _mark(self) -> object:
        """Return the URL in any form whose text is the URL: what is noted of a read keeps no request alive."""
        return self.exchange.request.resource

    def _is_small(self) -> bool:
        """Return whether the request's body is in memory, and has at most 64 KiB; False if that takes time to tell."""
        return False

    def leave(self, status: int | None = None) -> None:
        """Note that the request has ended, with a response of this status or without one."""
        exchange = self._exchange
        if status is not None and status < 400 and status not in UNEXECUTED:
            self.is_done = True
            if self.automatic is not None:
                self.automatic.succeeded()
            if exchange is None and self._is_small():
                return
        else:
            run = None if exchange is None else exchange.run
            in_doubt = run is not None and run.in_doubt
            refused = status is not None and status < 500 and status not in _MAYBE_EXECUTED and not in_doubt
            if refused or (exchange is not None and exchange._unexecuted):
                self.is_open = False
                if self.automatic is not None:
                    self.automatic.pass_on() if status in UNEXECUTED else self.automatic.take_back()
                self._take_back_own_key()
        if exchange is not None or not self._is_small():
            ledger.replace(self, EndedRequest(self))

    def _take_back_own_key(self) -> None:
        """Note that the request with the caller's own key was certainly not executed."""
        if self._sent_key is not None:
            self._sent_key.take_back()
            self._sent_key = None

    def judge(self, context: RunContext | None, reads: Sequence[object], *, done: bool = False) -> Judgement:
        """Return the judgement on a repeat, as `Entry.judge` does."""
        return EndedRequest(self).judge(context, reads, done=done)

    @property
    def report(self) -> Report | None:
        """The report on the attempts once the request was given up, None before that and without a failure."""
        return None if self._exchange is None else self._exchange.report

    def note_broken_body(self) -> None:
        """Take notice that the body of a response broke, and that the request was given up then; do nothing here."""

    def is_read_at_once(self, response: Any) -> bool:
        """Return whether to read the body of a response before the next decision: a short success of a write."""
        return self._method not in CONTINUED and is_read_at_once(self._method, self.status(response), response.headers)

    def is_shown(self, response: Any) -> bool:
        """Return whether to read the body of a response so that `on_result` can judge it: a short one of any status."""
        if not self._options.sample.checks_values:
            return False
        return is_shown(self._method, self.status(response), response.headers)

    def may_ask_to_wait(self, response: Any) -> bool:
        """Return whether to read the body of a failed response, because it may ask for a wait."""
        return self._method != "HEAD" and may_ask_in_body(self.status(response), self.headers(response))

    def bound_reading(self, response: Any) -> Callable[[int], bool]:
        """Return a function that says, by the bytes that were read of a body, if the rest is left to the caller."""
        now = self.runtime.monotonic
        end = self.look.deadline if self.look else INFINITY if self.is_shown(response) else now() + LOOK
        return lambda size: size > SHOWN or now() > end

    def may_settle(self, status: int) -> bool:
        """Return whether reads, then in `look`, can tell what an earlier attempt did; `status`: of a response."""
        if self._options.settle is not None:
            from forbear.exchange.http.settling import find_read_back  # only after a failure

            self.look = find_read_back(self._options.settle, self.exchange, status)
        return self.look is not None

    def needs_reader(self, response: Any) -> bool:
        """Return whether the caller must read a response's body through a Reader, which notices where it breaks."""
        given_up = self.report is not None and not self.report.settled
        return needs_reader(self._method, self.status(response), response.headers, given_up=given_up)

    def status(self, response: Any) -> int:
        """Return the status of a response."""
        status: int = response.status_code
        return status

    def headers(self, response: Any) -> Mapping[str, str]:
        """Return the headers of a response; names are found in any case."""
        headers: Mapping[str, str] = response.headers
        return headers

    def _adds_token(self) -> bool:
        """Return whether the request, a write, gets an idempotency token if it has none of its own."""
        service = self._options.resolve(*self._target(), self._origin)[1]
        key = self._options.key_for(service, self._origin)
        return service.token_header is not None if key is None else key.add

    def _origin(self) -> "Origin":
        host, target = self._target()
        scheme, port = self._scheme_and_port()
        return Request(self._method, host, target, scheme=scheme, port=port).origin

    def _adjust(self, headers: MutableMapping[str, str], variation: Variation) -> None:
        """Change the caller's `headers`, in place, into those of `variation`, with the token if there is one."""
        if self._token is not None:
            headers[self._token[0]] = self._token[1]
        variation.adjust(headers)

    def _open(self) -> Exchange:
        """Return the exchange of the request, and set its body and its token.

        Only this method decides whether a request needs an idempotency token, which one, and whether that makes it
        repeatable. The caller's own token stays. A signed request gets none, unless the user named the header for it.
        """
        options, method, headers = self._options, self._method, self._headers()
        host, target = self._target()
        policy, service = options.resolve(host, target, self._origin)
        key = None if method in READS else options.key_for(service, self._origin)
        scheme, port = self._scheme_and_port()

        def describe(content: bytes | None) -> Request:
            return Request(method, host, target, join_headers(headers), content, scheme, port)

        if key is not None and not is_for_its_host(describe(None)):
            key = None
        name = None if method in READS else service.token_header if key is None else key.header
        lines = {} if name is None else join_headers(headers)
        if name is not None and key is None and is_signed(target, lines.get("authorization", "")):
            name = None
        own = None if name is None else lines.get(name.lower())
        adds = own is None and (key is None or key.add)
        self._body = body = self._read_body()
        content = body.content if isinstance(body, Fixed) else None
        if key is not None and (adds or own):
            key = self._take_key(key, describe(content), own)
        automatic = self.automatic
        token = automatic.key if automatic is not None else None
        self._token = (name, token or new_token()) if name is not None and adds else None
        if self._token is None and not (own or "").strip():
            key = None  # the request does not carry it
        described, new = partial(describe, content), self._token is not None or automatic is not None
        settles = self.can_read_back and options.settle is None
        return Exchange(
            policy, service, described, body, self, key=key, is_new_key=new, vouch=options.vouch, settles=settles
        )

    def _take_key(self, key: IdempotencyKey, request: Request, own: str | None) -> IdempotencyKey:
        """Return the key for as long as it still counts, and set `automatic` if the request has no value of its `own`.

        RepeatRefused, with a report that stops the runs around, if the request must not be sent.
        """
        if not is_used[0]:
            return key
        from forbear.run.keys import MARGIN, RepeatRefused, automatic_key, check_key

        try:
            if own is not None:
                rest, self._sent_key, self.automatic = check_key(own, identify(request))
                return key.shorten(rest)
            place = request.method, request.origin
            self.automatic = automatic_key(place, identify(request), key.span / MARGIN)
        except RepeatRefused as error:
            leave_in_doubt(error, f"{request.method} {request.host}", str(error), self.runtime, self.time, request)
            raise
        return key.shorten(self.automatic.until - self.time)
