"""`Facts`: what is known of one request that a failed function sent, in the words of the table in `functions.py`.

Here are those about requests of HTTP, which ask the service that knows the request.
"""

from forbear.apis import find_api
from forbear.core.dataclass import dataclass
from forbear.core.decide import Reason
from forbear.core.report import report_on
from forbear.core.service import Judgement, OperationSet
from forbear.evidence.sent import UNEXECUTED, Sent, was_read
from forbear.http import preconditions
from forbear.http.api import IdempotencyKey
from forbear.http.patterns import Cover, covers, is_for_its_host, patterns
from forbear.http.request import IDEMPOTENT, READS, Request
from forbear.judges.arguments import Arguments
from forbear.run.scope import has_open_scopes
from forbear.run.vouching import is_vouched, is_vouched_within
from forbear.services import registry
from forbear.services.at_least_once import option_for
from forbear.services.rfc9110 import RFC9110
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from forbear.http.api import Api

_KEYS = ("idempotency-key", "x-idempotency-key", "x-request-id")
UNKNOWN_SPAN = IdempotencyKey("any").span
"""The seconds for which a key counts if nobody says how long the server remembers it."""


_UNKNOWN = frozenset({408, 409, 423, 425, 429, 499})
"""Client errors after which a request may have been executed, or another one with its key."""


class Facts:
    """The facts about one request. What is not known is False or None, and makes nothing safer.

    - `what` names the request in notes, `cure` says how to vouch for it.
    - `not_sent`: it was certainly not executed. `rolled_back`: the transaction that it belonged to was.
    - `used_up`: its body comes from outside of the function, and this attempt has read it.
    - `refused`: the server answered that the request is wrong, so it did not execute it.
    - `still_open`: it belongs to a transaction that the error did not end.
    - `vouched`: the user says that it may be executed twice.
    - `unread`: why it could not be read, if even its method is not known to be safe.
    - `commits`: it ends a transaction, or is a write that is one by itself. `commits_alone`: it was rolled back, but
      statements before it may have been such writes.
    - `claims`: it answers by a value whether this caller was the first.
    - `condition`: "version", "absent" or "key": what makes it safe to repeat, if anything does.
    - `kept`: the condition's value is an argument of the run, so it is the same in each attempt.
    - `span`: the seconds since the run began within which a key counts, and `until` when the next attempt may begin.
    - `drawn`: it creates something whose name looks as if it was drawn in the attempt.
    - `safe`: it changes nothing, or leaves the same state. `billed`: it may have cost money.
    - `is_read`: it changes nothing and costs nothing, so that no other fact counts.
    - `done`: it has succeeded, as an adapter or its response knows.
    - `read_before`: it writes what the attempt has read before, as an adapter knows.
    - `automatic`: its key is one that an adapter made. It is used again only while the outcome is unknown.
    """

    used_up = False
    refused = False
    rolled_back: bool | None = None
    still_open = False
    vouched = False
    unread: str | None = None
    commits = False
    commits_alone = False
    claims = False
    condition: str | None = None
    kept = False
    span = UNKNOWN_SPAN
    until = 0.0
    drawn = False
    safe = is_read = False
    read_before = False
    automatic = billed = False

    def __init__(self, sent: Sent, what: str | None = None, cure: str = "") -> None:
        self._call: Any = sent.subject
        self._what = what
        self._cure = cure
        self.done = sent.holders is not None and 0 < (sent.status or 0) < 400
        self.not_sent = sent.status in UNEXECUTED if sent.hop else sent.unsent is True

    @property
    def what(self) -> str:
        """The request, as notes name it; a URL is without query and secrets."""
        return f"{self._call.method} {redact(self._call.resource)}" if self._what is None else self._what

    @property
    def cure(self) -> str:
        """The words that say how to vouch for the request, ready to paste; only notes need them."""
        if self._cure:
            return self._cure
        from forbear.http import vouch

        named = f'safe="{self._what}"'
        option = vouch.option_for(self._call) if self._what is None else option_for(self._call, named)
        return f"if a second execution does no harm, say so: {option}"

    def is_matched(self, word: str) -> bool:
        """Return whether a pattern or set of the user covers the request, which nothing has vouched for."""
        return ("://" in word or isinstance(word, OperationSet)) and covers(patterns(word), self._call)


@dataclass(slots=True)
class Word:
    """The knowledge of an adapter about a request that it sent.

    - `judgement` is its own, None where its table has none. `vouched`: its user vouches for the request.
    - `safe` and `apis` are its options.
    - `automatic` is the span of the key that it made for the request, None without one.
    """

    judgement: Judgement | None = None
    vouched: bool = False
    safe: tuple[str, ...] = ()
    apis: "tuple[Api, ...]" = ()
    automatic: float | None = None


VOUCH_FOR_ALL = "if a second execution does no harm, say so: repeatable=True"


def http_facts(
    sent: Sent,
    arguments: Arguments,
    safe: tuple[str, ...] = (),
    apis: "tuple[Api, ...]" = (),
    errors: "Sequence[BaseException]" = (),
    known: Judgement | None = None,
) -> Facts:
    """Return the facts about a request of HTTP. `known` is the judgement of the adapter that sent it.

    `safe` has the user's patterns, `apis` what the user knows. The `errors` that show the request may
    have the report of an adapter of ours that sent it, and the word of scopes that were open then.
    """
    request = sent.subject
    status = 0 if sent.status is None or sent.hop else sent.status
    if not isinstance(request, Request):
        facts = Facts(sent, f"{sent.method or 'a request'} of {sent.client}", VOUCH_FOR_ALL)
        facts.refused = 400 <= status < 500 and status not in _UNKNOWN
        facts.safe = sent.method in READS or sent.method in IDEMPOTENT
        facts.unread = None if facts.safe else sent.unread
        return facts
    facts = Facts(sent)
    api = _find_own(apis, request)
    judgement = _judge(request, api, known, sent.service) if sent.operation is None else _judge_by_sdk(*sent.operation)
    if is_free(judgement):
        facts.is_read = True
        return facts
    facts.refused = 400 <= status < 500 and status not in _UNKNOWN
    if api is not None:
        facts.not_sent = facts.not_sent or (status in api.not_executed and is_for_its_host(request))
    if facts.not_sent:
        return facts
    facts.billed = judgement.may_cost(status)
    if judgement.repeatable:
        read_condition(facts, judgement, _value_of(judgement.met, request), arguments)
        if facts.safe:
            return facts
    if judgement.refused is None and not judgement.session:
        facts.vouched = is_covered(request, safe, errors, () if api is None else api.patterns)
    if facts.condition is None and not judgement.session and _is_judged_safe(request, errors):
        facts.safe = True  # a version is judged anew: the function may have read it
    if facts.condition == "absent":
        facts.drawn = arguments.lack_drawn(request.target)
    if facts.condition is None and not facts.safe and judgement.refused is None:
        _read_key(facts, request, (None if api is None else api.key) or find_api(request.origin).key, arguments)
    return facts


def is_used_up(sent: Sent, not_sent: bool, arguments: Arguments, errors: "Sequence[BaseException]") -> bool:
    """Return whether the attempt has read a body of outside, which the next one would find read."""
    if not_sent or not sent.streams:
        return False
    return arguments.reach_object({id(each) for each in sent.streams if was_read(each)}, errors)


def are_reads(requests: "Iterable[Sent]", apis: "tuple[Api, ...]") -> bool:
    """Return whether all requests are reads over HTTP, of which no other fact counts."""
    for sent in requests:
        request = sent.subject
        if sent.method not in READS or sent.operation is not None or not isinstance(request, Request):
            return False
        if not is_free(_judge(request, _find_own(apis, request), None, sent.service)):
            return False
    return True


def is_free(judgement: Judgement) -> bool:
    """Return whether a request changes nothing and costs nothing."""
    return judgement.repeatable and not judgement.mutation and not judgement.billed and judgement.met is None


def _find_own(apis: "tuple[Api, ...]", request: Request) -> "Api | None":
    return next((each for each in apis if each.is_for(request.origin)), None) if apis else None


def is_covered(
    call: object, safe: tuple[str, ...], errors: "Sequence[BaseException]", by_api: "tuple[Cover, ...]" = ()
) -> bool:
    """Return whether the user says that a request may be executed twice: by pattern, set, Api or scope.

    A scope counts if it is open now, or was when one of the `errors` was raised.
    """
    if (has_open_scopes() and is_vouched(call)) or any(is_vouched_within(call, error) for error in errors):
        return True
    if not safe and not by_api:
        return False
    by_option = patterns(text for text in safe if "://" in text or isinstance(text, OperationSet))
    return covers((*by_option, *by_api), call)


def _read_key(facts: Facts, request: Request, honoured: "IdempotencyKey | None", arguments: Arguments) -> None:
    """Set the condition to "key" if the request has one; it counts only by the header that the API honours (K7)."""
    header = "" if honoured is None else honoured.header.lower()
    for name in (*_KEYS, header):
        if name in request.headers:
            facts.condition = "key"
            if honoured is not None and name == header:
                facts.span = honoured.span
                facts.kept = arguments.keep(request.headers[name])


def _judge(request: Request, api: "Api | None", known: Judgement | None, of_client: str | None) -> Judgement:
    """Return the judgement on a request by its service, if none is known; `of_client` is that of its own client."""
    if known is None:
        path = request.target.partition("?")[0]
        named = (None if api is None else api.find_service(path)) or of_client
        service: Any = registry.find(request.host, path) or RFC9110 if named is None else registry.service(named)
        judgement: Judgement = service.classify(request)
    else:
        judgement = known
    if judgement.mutation and judgement.repeatable and judgement.met is None:
        precondition = _find_precondition(request)
        judgement = judgement if precondition is None else judgement.replace(met=precondition)
    return judgement


def _find_precondition(request: Request) -> str | None:
    """Return the precondition of a write that is safe without one: the next attempt may have another version in it."""
    if preconditions.has_tag(request.headers):
        return "If-Match:"
    return "If-None-Match: *" if request.headers.get("if-none-match", "").strip() == "*" else None


_LIMITS = frozenset(
    {Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET, Reason.STOPPED, Reason.EXHAUSTED}
)


def _is_judged_safe(request: Request, errors: "Sequence[BaseException]") -> bool:
    """Return whether an adapter of ours has found that this request may be repeated: it stopped at a limit only."""
    reports = filter(None, map(report_on, errors))
    return any(
        report.method == request.method and report.reason in _LIMITS and report.resource == redact(request.resource)
        for report in reports
    )


def _judge_by_sdk(operation: str, parameters: "dict[str, Any]") -> Judgement:
    from forbear.services.llm import classify

    return classify(operation, parameters)


_VERSIONS = ("match", "etag", "generation", "versionid", "appendpos")


def read_condition(facts: Facts, judgement: Judgement, value: object, arguments: Arguments) -> None:
    """Set what makes a repeatable request safe, by the words of the condition that it meets."""
    met = (judgement.met or "").lower()
    if not met:
        facts.safe = 409 not in judgement.maybe_done
        facts.condition = None if facts.safe else "absent"
        return
    if "request_id" in met or "requestid" in met:
        facts.condition = "key"
    elif "none-match" in met or value in ("0", 0):
        facts.condition = "absent"
    elif any(word in met for word in _VERSIONS):
        facts.condition = "version"
    elif "nothing" not in met and "reschedule" not in met:
        facts.condition = "absent"  # a create under an id that the caller chose
    else:
        facts.safe = True
        return
    facts.kept = arguments.keep(value)


def _value_of(met: str | None, request: Request) -> object:
    """Return the value of the condition that a request meets, None if it is not one value in query or header."""
    if met is None:
        return None
    name = met.partition(" and ")[0]
    if name.endswith("="):
        return preconditions.value(preconditions.split(request.target)[1], name[:-1])
    return request.headers.get(name.partition(":")[0].lower()) if ":" in name else None
