"""Requests to hosts whose API nobody described: judged by what RFC 9110 says of methods and preconditions alone.

Reads, PUT and DELETE may be executed twice (§9.2.2); PATCH only under a precondition that cannot hold a second time;
all other methods never, for what they do need not change the target whose version the precondition names. Where a
header asks for another method, the more dangerous of the two counts: not every server obeys it.
"""

from collections.abc import Callable, Mapping

from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Safety, Verdict
from forbear.http import method, preconditions
from forbear.http.request import Request
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.tables import responses

_NAME = "rfc9110"
_READ = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, mutation=False)
# A 412 comes only where a precondition was sent, and then it may be one's own first attempt that broke it.
_PUT = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, maybe_done=(412,))
_DELETE = Judgement(_NAME, None, Safety.ALWAYS, repeatable=True, maybe_done=(404, 410, 412))
_NEVER = Judgement(_NAME, None, Safety.NEVER)
_IF_MATCH = Judgement(
    _NAME, None, Safety.CONDITIONAL, conditions=("If-Match:",), met="If-Match:", repeatable=True, maybe_done=(412,)
)
_IF_NONE = _IF_MATCH.replace(conditions=("If-Match:", "If-None-Match: *"), met="If-None-Match: *")


class Rfc9110(Record):
    """The service of last resort: it knows every host and no operation."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in judgements and reports."""
        return _NAME

    @property
    def token_header(self) -> None:
        """There is no header by which every API drops duplicates."""

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        """Return nothing: RFC 9110 knows methods, no operations."""
        return {}

    def classify(self, request: Request) -> Judgement:
        """Whether a request may be executed twice, by its method and preconditions."""
        asked = max((request.method, *method.overrides(request.headers)), key=method.danger)
        if asked in method.READS:
            return _READ
        if asked in method.IDEMPOTENT:
            return _PUT if asked == "PUT" else _DELETE
        # A PATCH changes its target; a POST may create something elsewhere, and leave the target's version as it is.
        if asked == "PATCH":
            if preconditions.has_strong_tag(request.headers):
                return _IF_MATCH
            if request.headers.get("if-none-match", "").strip() == "*":
                return _IF_NONE
        return _NEVER

    def verdict(
        self,
        judgement: Judgement,
        status: int,
        headers: Mapping[str, str],
        body: Callable[[], bytes] | None = None,
    ) -> Verdict | None:
        """What a reply means: 408, 429, 500, 502, 503 and 504 are worth another try; None where it is no error."""
        return responses.verdict(status, headers)


RECOMMENDED = RFC9110 = Rfc9110()

policy = Policy(ErrorVerdicts(RFC9110), repeatable=False, service=RFC9110)
"""The policy for HTTP APIs that nobody described: at most 5 attempts within 60 s, full jitter under 1, 2, 4 … s."""
