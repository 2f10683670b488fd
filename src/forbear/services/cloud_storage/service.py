"""The Cloud Storage JSON API: which operation a request is, and what its replies mean. It sends nothing.

A request that looks like none of the operations is a read or not by its method; as a mutation it is never repeated, not
even a PUT or DELETE: this API is known and that call is not. Paths are trusted only on hosts that speak JSON.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from forbear.core.record import Record
from forbear.core.verdict import Safety, Verdict
from forbear.http import method as _method
from forbear.http import preconditions
from forbear.http.request import Judgement, Request
from forbear.http.status import TRANSIENT_STATUSES
from forbear.services import replies
from forbear.services.cloud_storage import hosts, uploads
from forbear.services.matcher import Matcher
from forbear.services.operation import Operation
from forbear.services.table import Row, Rule, load

NAME = "cloud_storage"

_NEVER = Rule(Safety.NEVER)
_READ = Judgement(NAME, None, Safety.ALWAYS, repeatable=True, mutation=False)
_UNKNOWN = Judgement(NAME, None, Safety.NEVER)
_BATCH = _UNKNOWN.replace(
    refused="a batch holds many calls that cannot be judged or repeated one by one; send each of them alone"
)

DOCUMENTED_STATUSES = frozenset({408, 429, *range(500, 600)})
"""What the retry page calls worth another try."""

_CHUNK_STATUSES = DOCUMENTED_STATUSES - {429}


class CloudStorage(Record):
    """What is known of the Cloud Storage JSON API.

    By default the table's own rules hold. `documented` follows the retry page to the letter instead: what the page does
    not name is never repeated if it changes anything, ETags count where the page says so, the start of a resumable
    session needs the condition of the upload, and every 5xx is worth another try. `disputed` adds to the table's rules
    the conditions that some source accepts and others reject: an If-Match header on updates, which the server may
    ignore. Raises ValueError for both together.
    """

    __slots__ = ("disputed", "documented")

    disputed: bool
    documented: bool

    def __init__(self, *, disputed: bool = False, documented: bool = False) -> None:
        if disputed and documented:
            raise ValueError("`disputed` must be False with `documented`, which decides disputed conditions, got True")
        self._set(disputed=disputed, documented=documented)

    @property
    def name(self) -> str:
        """The name in judgements and reports."""
        return NAME

    @property
    def token_header(self) -> str:
        """The header by which the service may drop duplicates; nothing documents it, so it makes nothing safe."""
        return "x-goog-gcs-idempotency-token"

    def classify(self, request: Request) -> Judgement:
        """The operation that a request asks for and whether it may be executed twice."""
        path, query = preconditions.split(request.target)
        overrides = _method.overrides(request.headers)
        overridden = bool(overrides) and set(overrides) != {request.method}
        known = None
        if "#" not in path and hosts.speech(request.host) is not hosts.Speech.XML:
            if overridden:
                known = self._overridden(overrides, path, query, request)
            else:
                known = self._known(path, query, request)
        if known is not None:
            return known
        return _READ if request.method in _method.READS and not overridden else _UNKNOWN

    def verdict(self, judgement: Judgement, status: int, headers: Mapping[str, str]) -> Verdict | None:
        """What a reply means, None where it is a success."""
        if uploads.is_cancelled(judgement, status):
            return None
        transient = TRANSIENT_STATUSES
        if self.documented:
            transient = _CHUNK_STATUSES if uploads.is_chunk(judgement) else DOCUMENTED_STATUSES
        return replies.verdict(status, headers, transient)

    def _known(self, path: str, query: str, request: Request) -> Judgement | None:
        if path.startswith("/storage/v1/"):
            return self._operation(request.method, path, query, request)
        if path.startswith(("/upload/storage/v1/", "/resumable/upload/storage/v1/")):
            matcher, upload = _compiled(self.disputed, self.documented)
            plain = path.removeprefix("/resumable").removeprefix("/upload")
            return upload.judge(request, query) if matcher.find("POST", plain) is upload.insert else None
        if path.startswith("/download/storage/v1/") and request.method == "GET":
            return self._operation("GET", path.removeprefix("/download"), query, request)
        return _BATCH if path == "/batch" or path.startswith("/batch/storage/") else None

    def _overridden(self, overrides: list[str], path: str, query: str, request: Request) -> Judgement | None:
        # On its plain paths the API executes what this one header names on a POST; all else is not documented.
        if request.method != "POST" or len(overrides) > 1 or _method.OVERRIDES[0] not in request.headers:
            return None
        return self._operation(overrides[0], path, query, request) if path.startswith("/storage/v1/") else None

    def _operation(self, method: str, path: str, query: str, request: Request) -> Judgement | None:
        operation = _compiled(self.disputed, self.documented)[0].find(method, path)
        return None if operation is None else operation.judge(request, query)


@cache
def operations() -> tuple[Row, ...]:
    """The table of the JSON API; the own columns of a row are its HTTP method and its path template."""
    return load(Path(__file__).with_name("json_api.csv"), ("method", "path"))


@cache
def _compiled(disputed: bool, documented: bool) -> tuple[Matcher[Operation], uploads.Uploads]:
    matcher: Matcher[Operation] = Matcher()
    rules = {row.id: _rule(row, disputed, documented) for row in operations()}
    by_id: dict[str, Operation] = {}
    for row in operations():
        method, path = row.where
        maybe_done = tuple(map(int, row.maybe_done))
        mutation = method not in _method.READS
        by_id[row.id] = Operation(NAME, row.id, rules[row.id], mutation=mutation, maybe_done=maybe_done)
        matcher.add(method, path, by_id[row.id])
    # Starting a session commits nothing; an orphan is forgotten after a week.
    start = rules[uploads.INSERT] if documented else Rule(Safety.ALWAYS)
    return matcher, uploads.Uploads(NAME, by_id[uploads.INSERT], Operation(NAME, uploads.INSERT, start, mutation=True))


def _rule(row: Row, disputed: bool, documented: bool) -> Rule:
    if documented:
        return row.documented or _NEVER
    if disputed and row.disputed:
        return Rule(Safety.CONDITIONAL, row.rule.conditions + row.disputed)
    return row.rule


RECOMMENDED = CloudStorage()
DOCUMENTED = CloudStorage(documented=True)
