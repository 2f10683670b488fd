"""IAM: the APIs of accounts, keys, roles and pools (v1), deny policies (v2), bindings (v3) and credentials.

It sends nothing. `setIamPolicy` of other APIs (projects, buckets, topics) is theirs, and not known here.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from forbear.core import check
from forbear.core.verdict import TRANSIENT, Verdict
from forbear.http.request import Judgement
from forbear.http.status import TRANSIENT_STATUSES
from forbear.services import codes
from forbear.services.api import Api, rows
from forbear.services.described import Described
from forbear.services.rpc import Metadata
from forbear.services.table import Row

NAME = "iam"
DOCUMENTED_STATUSES = frozenset({500, 502, 503, 504})
"""What the retry page of IAM calls worth another try."""


class Iam(Described):
    """What is known of IAM.

    `statuses` are those worth another try: 408, 429, 500, 502, 503 and 504. `retry_not_found` adds 404, for reads of
    IAM are eventually consistent and what was just created may not be found yet; except where 404 is how the end of an
    earlier attempt looks, as for a delete.
    """

    __slots__ = ("retry_not_found",)

    retry_not_found: bool

    def __init__(self, *, statuses: frozenset[int] = TRANSIENT_STATUSES, retry_not_found: bool = False) -> None:
        super().__init__(statuses=statuses)
        check.flag("retry_not_found", retry_not_found)
        self._set(retry_not_found=retry_not_found)

    @property
    def name(self) -> str:
        """The name in judgements and reports."""
        return NAME

    def apis(self) -> Mapping[str, Api]:
        """The compiled tables by the name of the API in the host name."""
        return _apis()

    def verdict(
        self,
        judgement: Judgement,
        status: int,
        headers: Mapping[str, str],
        body: Callable[[], bytes] | None = None,
    ) -> Verdict | None:
        """What a reply means, None where it is a success; a 409 that says ABORTED is a conflict, except on a read."""
        if status == 404 and self._may_appear(judgement, 404):
            return TRANSIENT
        return super().verdict(judgement, status, headers, body)

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        """What the end of a call means, None where it is a success; ABORTED is a conflict, except on a read."""
        if code == codes.NOT_FOUND and self._may_appear(judgement, code):
            return TRANSIENT
        return super().call_verdict(judgement, code, metadata)

    def _may_appear(self, judgement: Judgement, not_found: int) -> bool:
        return self.retry_not_found and not_found not in judgement.maybe_done


@cache
def operations(table: str) -> tuple[Row, ...]:
    """A table: "v1", "v2", "v3" or "credentials"."""
    return rows(Path(__file__).with_name(f"{table}.csv"))


@cache
def _apis() -> dict[str, Api]:
    admin = (*operations("v1"), *operations("v2"), *operations("v3"))
    return {"iam": Api(NAME, admin), "iamcredentials": Api(NAME, operations("credentials"))}


RECOMMENDED = Iam()
DOCUMENTED = Iam(statuses=DOCUMENTED_STATUSES)
