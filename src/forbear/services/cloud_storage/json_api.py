"""The JSON API of Cloud Storage: which operation a request is. It knows no host and no reply."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from forbear.core.verdict import Safety
from forbear.http import method as _method
from forbear.http.request import Judgement, Request
from forbear.services.cloud_storage.rules import NAME, choose
from forbear.services.cloud_storage.uploads import INSERT, Uploads
from forbear.services.described import BATCH
from forbear.services.matcher import Matcher
from forbear.services.operation import Operation
from forbear.services.table import Row, Rule, load

_BATCH = Judgement(NAME, None, Safety.NEVER, refused=BATCH)
_ROOTS = frozenset({"storage", "upload", "resumable", "download", "batch"})


@cache
def operations() -> tuple[Row, ...]:
    """The table of the JSON API; the own columns of a row are its HTTP method and its path template."""
    return load(Path(__file__).with_name("json_api.csv"), ("method", "path"))


def speaks(path: str) -> bool:
    """Whether a path on a host that speaks both APIs is one of this one."""
    return path[:1] == "/" and path[1:].partition("/")[0] in _ROOTS


class JsonApi:
    """The judge of everything that this API answers, by the rules that the settings choose."""

    __slots__ = ("_matcher", "_uploads")

    def __init__(self, *, disputed: bool, documented: bool) -> None:
        self._matcher: Matcher[Operation] = Matcher()
        for row in operations():
            rule = choose(row, disputed=disputed, documented=documented)
            operation = Operation(NAME, row, rule)
            method, path = row.where
            self._matcher.add(method, path, operation)
            if row.id == INSERT:
                # Starting a session commits nothing; an orphan is forgotten after a week.
                start = rule if documented else Rule(Safety.ALWAYS)
                self._uploads = Uploads(NAME, operation, Operation(NAME, replace(row, maybe_done=()), start))

    def judge(self, request: Request, path: str, query: str) -> Judgement | None:
        """The judgement on a request, None for one that is no known operation."""
        if path.startswith("/storage/v1/"):
            return self._operation(request.method, request, path, query)
        if path.startswith(("/upload/storage/v1/", "/resumable/upload/storage/v1/")):
            plain = path.removeprefix("/resumable").removeprefix("/upload")
            uploads = self._uploads
            return uploads.judge(request, query) if self._matcher.find("POST", plain) is uploads.insert else None
        if path.startswith("/download/storage/v1/") and request.method == "GET":
            return self._operation("GET", request, path.removeprefix("/download"), query)
        return _BATCH if path == "/batch" or path.startswith("/batch/storage/") else None

    def overridden(self, overrides: list[str], request: Request, path: str, query: str) -> Judgement | None:
        """The same where headers name another method: on its plain paths the API executes what one does on a POST."""
        if request.method != "POST" or len(overrides) > 1 or _method.OVERRIDES[0] not in request.headers:
            return None  # not documented
        return self._operation(overrides[0], request, path, query) if path.startswith("/storage/v1/") else None

    def _operation(self, method: str, request: Request, path: str, query: str) -> Judgement | None:
        operation = self._matcher.find(method, path)
        return None if operation is None else operation.judge(request, query)
