"""Uploads and resumable sessions: one path, told apart by query and headers. It knows no other operation."""

from forbear.core.verdict import Safety
from forbear.http import preconditions
from forbear.http.request import Judgement, Request
from forbear.services.operation import Operation

INSERT = "storage.objects.insert"

# The upload protocol of other Google APIs, steered by other names; nothing of it is known here.
_FOREIGN_HEADERS = ("x-goog-upload-protocol", "x-goog-upload-command")
_FOREIGN_PARAMETER = "upload_protocol"


class Session:
    """The judge of what is sent to a resumable session; `chunk`, `status` and `cancel` are the ids of operations."""

    __slots__ = ("_cancel", "_chunk", "_status")

    def __init__(self, service: str, *, chunk: str = INSERT, status: str = INSERT, cancel: str = INSERT) -> None:
        # Sent again blindly, a chunk may meet a session that has moved on: ask first, then continue.
        self._chunk = Judgement(service, chunk, Safety.NEVER, session=True)
        self._status = Judgement(service, status, Safety.ALWAYS, repeatable=True, mutation=False, session=True)
        self._cancel = Judgement(
            service, cancel, Safety.ALWAYS, repeatable=True, maybe_done=(404, 410, 499), session=True
        )

    def judge(self, request: Request, query: str) -> Judgement | None:
        """The judgement on a request to a session, None for one that is no part of its protocol."""
        if not preconditions.value(query, "upload_id"):
            return None
        if request.method == "DELETE":
            return self._cancel
        if request.method not in ("PUT", "POST"):
            return None
        return self._status if _asks_for_status(request) else self._chunk


class Uploads:
    """The judge of everything on the path of an upload.

    `insert` judges an upload in one request, `start` the start of a session.
    """

    __slots__ = ("_session", "_start", "insert")

    def __init__(self, service: str, insert: Operation, start: Operation) -> None:
        self.insert = insert
        self._start = start
        self._session = Session(service)

    def judge(self, request: Request, query: str) -> Judgement | None:
        """The judgement on a request to an upload path, None for one that is no known part of an upload."""
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
    """Whether a judgement is on a request that sends data in a session."""
    return judgement.session and judgement.safety is Safety.NEVER


def is_cancelled(judgement: Judgement, status: int) -> bool:
    """Whether a reply says that a session is gone as asked: 499, the one success above 399."""
    return status == 499 and judgement.session and status in judgement.maybe_done


def _asks_for_status(request: Request) -> bool:
    empty = request.body == b"" or (request.body is None and request.headers.get("content-length") == "0")
    return empty and request.headers.get("content-range", "").strip().lower().startswith("bytes */")
