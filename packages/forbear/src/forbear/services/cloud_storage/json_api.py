"""The JSON API of Cloud Storage: find the operation of a request, and distinguish the requests of an upload.

An upload is one request, or a resumable session: a start, chunks of data, status queries and perhaps a cancellation.
"""

from functools import cache
from pathlib import Path

from forbear.core.dataclass import replace
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http import preconditions
from forbear.http.request import OVERRIDES, Request
from forbear.tables.operations import HttpOperation, Matcher, http_operation
from forbear.tables.service import BATCH
from forbear.tables.table import Row, Rule, load

NAME = "cloud_storage"

_NEVER = Rule(Safety.NEVER)


def choose(row: Row, *, disputed: bool, documented: bool) -> Rule:
    """Return the rule of a row: the safety of its operation, and the conditions for it.

    With `documented` it is that of the retry page, which lets nothing be repeated that it does not name. With
    `disputed` the row's disputed conditions count, too.
    """
    if documented:
        return row.documented or _NEVER
    if disputed and row.disputed:
        return Rule(Safety.CONDITIONAL, row.rule.conditions + row.disputed)
    return row.rule


_BATCH = Judgement(NAME, None, Safety.NEVER, refused=BATCH)
_ROOTS = frozenset({"storage", "upload", "resumable", "download", "batch"})


@cache
def operations() -> tuple[Row, ...]:
    """Return the rows of the JSON API's table; `where` is the HTTP method, the path template and `settled_by`."""
    return load(Path(__file__).with_name("json_api.csv"), ("method", "path"), ("settled_by",))


def is_json_path(path: str) -> bool:
    """Return whether a path is one of the JSON API's, on a host that serves the XML API on all other paths."""
    return path[:1] == "/" and path[1:].partition("/")[0] in _ROOTS


class JsonApi:
    """The operations of the JSON API, compiled by the rules that `choose` picks."""

    __slots__ = ("_matcher", "_uploads")

    def __init__(self, disputed: bool, documented: bool) -> None:
        self._matcher: Matcher[HttpOperation] = Matcher()
        for row in operations():
            rule = choose(row, disputed=disputed, documented=documented)
            operation = http_operation(NAME, row, rule)
            method, path, _ = row.where
            self._matcher.add(method, path, operation)
            if row.id == INSERT:
                # Starting a session commits nothing; an orphan is forgotten after a week.
                start = rule if documented else Rule(Safety.ALWAYS)
                self._uploads = Uploads(NAME, operation, http_operation(NAME, replace(row, maybe_done=()), start))

    def judge(self, request: Request, path: str, query: str) -> Judgement | None:
        """Return the judgement on a request whose target has this path and query, None for an unknown operation."""
        if path.startswith("/storage/v1/"):
            return self._operation(request.method, request, path, query)
        if path.startswith(("/upload/storage/v1/", "/resumable/upload/storage/v1/")):
            plain = path.removeprefix("/resumable").removeprefix("/upload")
            uploads = self._uploads
            return uploads.judge(request, query) if self._matcher.find("POST", plain) is uploads.insert else None
        if path.startswith("/download/storage/v1/") and request.method == "GET":
            return self._operation("GET", request, path.removeprefix("/download"), query)
        return _BATCH if path == "/batch" or path.startswith("/batch/storage/") else None

    def judge_overridden(self, overrides: list[str], request: Request, path: str, query: str) -> Judgement | None:
        """Return the judgement on a POST with `X-HTTP-Method-Override` alone; None for others: none is documented."""
        if request.method != "POST" or len(overrides) > 1 or OVERRIDES[0] not in request.headers:
            return None  # not documented
        return self._operation(overrides[0], request, path, query) if path.startswith("/storage/v1/") else None

    def _operation(self, method: str, request: Request, path: str, query: str) -> Judgement | None:
        operation = self._matcher.find(method, path)
        return None if operation is None else operation.judge(request, query)


INSERT = "storage.objects.insert"

# The upload protocol of other Google APIs, which uses other names; Cloud Storage does not document it.
_FOREIGN_HEADERS = ("x-goog-upload-protocol", "x-goog-upload-command")
_FOREIGN_PARAMETER = "upload_protocol"


class SessionRequests:
    """The requests to a resumable upload session: chunks are never repeated, status queries and cancellations are."""

    __slots__ = ("_cancel", "_chunk", "_status")

    def __init__(self, service: str, *, chunk: str = INSERT, status: str = INSERT, cancel: str = INSERT) -> None:
        # The session may have received the chunk already: query it first, then continue.
        self._chunk = Judgement(service, chunk, Safety.NEVER, session=True)
        self._status = Judgement(service, status, Safety.ALWAYS, repeatable=True, mutation=False, session=True)
        self._cancel = Judgement(
            service, cancel, Safety.ALWAYS, repeatable=True, maybe_done=(404, 410, 499), session=True
        )

    def judge(self, request: Request, query: str) -> Judgement | None:
        """Return the judgement on a request to a session, None for one that the upload protocol does not have."""
        if not preconditions.value(query, "upload_id"):
            return None
        if request.method == "DELETE":
            return self._cancel
        if request.method not in ("PUT", "POST"):
            return None
        return self._status if _asks_for_status(request) else self._chunk


class Uploads:
    """The requests to an upload path: `insert` judges an upload in one request, `start` the start of a session."""

    __slots__ = ("_session", "_start", "insert")

    def __init__(self, service: str, insert: HttpOperation, start: HttpOperation) -> None:
        self.insert = insert
        self._start = start
        self._session = SessionRequests(service)

    def judge(self, request: Request, query: str) -> Judgement | None:
        """Return the judgement on a request to an upload path, None for one that is no known part of an upload."""
        if any(name in request.headers for name in _FOREIGN_HEADERS) or preconditions.values(query, _FOREIGN_PARAMETER):
            return None
        if preconditions.values(query, "upload_id"):
            return self._session.judge(request, query)
        kind = preconditions.value(query, "uploadType")
        if request.method != "POST":
            return None
        if kind in ("media", "multipart"):
            return self.insert.judge(request, query)
        return self._start.judge(request, query) if kind == "resumable" else None


def is_chunk(judgement: Judgement) -> bool:
    """Return whether a judgement is about a chunk: a request that sends data to a resumable session."""
    return judgement.session and judgement.safety is Safety.NEVER


def is_cancelled(judgement: Judgement, status: int) -> bool:
    """Return whether a response confirms that a resumable session was cancelled: 499, a success above 399."""
    return status == 499 and judgement.session and status in judgement.maybe_done


def _asks_for_status(request: Request) -> bool:
    empty = request.body == b"" or (request.body is None and request.headers.get("content-length") == "0")
    return empty and request.headers.get("content-range", "").strip().lower().startswith("bytes */")
