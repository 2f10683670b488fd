"""Listings of objects, page by page. Objects are in order of name, and a listing ends, whatever a server sends."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

from forbear.adapters import error_text, status_phrase
from forbear_transfer.errors import WrongResponse
from forbear_transfer.objects import FIELDS, Object, Url
from forbear_transfer.storage.bodies import LONGEST_TOKEN, WholeResponse

PAGE = 32 * 1024 * 1024
"""The largest page of a listing in bytes. 1 000 objects with names of 1 KiB and 8 KiB of metadata each have 10 MiB, or
three times as much if every character is escaped."""

EMPTY_PAGES = 1000
"""The number of pages in a row that may list nothing. The service sends some while it skips other objects."""

_PAGE_ITEMS = 1000


async def list_objects(
    call: Callable[..., Awaitable[WholeResponse]],
    bucket: str,
    prefix: str,
    delimiter: str | None,
    *,
    versions: bool = False,
) -> AsyncIterator[Object | Url]:
    """Yield the live objects whose names begin with `prefix`, by name, using `call` for each page.

    With `versions`, all versions come, those of one name one after the other.

    With a `delimiter`, the names with a delimiter after the prefix come as one Url of their common beginning. On each
    page, these Urls come after the objects. Raise WrongResponse for a name that is not in order or does not begin with
    `prefix`.
    """
    token: str | None = None
    what = f"list gs://{bucket}/{prefix}"
    path, pages = Url(bucket).list_path, Pages(what)
    fields = f"kind,nextPageToken,prefixes,items({FIELDS})"
    last, generation = {Object: "", Url: ""}, None
    while True:
        query = {"prefix": prefix or None, "delimiter": delimiter, "pageToken": token, "maxResults": _PAGE_ITEMS}
        query |= {"versions": "true"} if versions else {}
        page = parse_page(what, await call(what, "GET", path, {**query, "fields": fields}, most=PAGE))
        entries = _parse_entries(what, page, bucket)
        for entry in entries:
            name, kind = entry.name, type(entry)
            if entry.bucket != bucket or not name.startswith(prefix):  # callers cut the prefix off
                raise WrongResponse(f"{what}: {entry.url if isinstance(entry, Object) else entry} is not there")
            before = last[kind]
            if name <= before and (name < before or not versions or kind is Url or entry.generation == generation):
                how = "twice" if name == before else f"after {before!r}, not in order of names"
                raise WrongResponse(f"{what}: {name!r} comes {how}")
            last[kind], generation = name, entry.generation
            yield entry
        token = pages.next_token(page.get("nextPageToken"), empty=not entries)
        if token is None:
            return


def parse_page(what: str, response: WholeResponse) -> dict[str, Any]:
    """Return the JSON object of a page of a listing.

    Raise WrongResponse for any other response, which would look like an empty last page; `what` names the listing in
    it.
    """
    page = response.json()
    if response.status != 200 or page.get("kind") != "storage#objects":
        kind = error_text(ValueError(page.get("error", page.get("kind"))))[:80]
        raise WrongResponse(f"{what}: the response is not a listing: {status_phrase(response.status)}, {kind}")
    return page


def _parse_entries(what: str, page: Mapping[str, Any], bucket: str) -> list[Object | Url]:
    items, prefixes = (list[object]() if page.get(name) is None else page[name] for name in ("items", "prefixes"))
    if not isinstance(items, list) or not isinstance(prefixes, list):
        raise WrongResponse(f"{what}: the items are no list")
    if not all(isinstance(name, str) for name in cast("list[object]", prefixes)):
        raise WrongResponse(f"{what}: a folder has no name")
    objects: list[Object | Url] = [Object.of(resource) for resource in cast("list[dict[str, Any]]", items)]
    return objects + [Url(bucket, name) for name in cast("list[str]", prefixes)]


class Pages:
    """Checks the tokens of a listing one by one, and finds a cycle of any length while it remembers only one token.

    The remembered token is replaced at the 1st, 2nd, 4th, 8th … page (Brent's algorithm).
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._remembered: str | None = None
        self._count = 0
        self._next = 1
        self._empty = 0

    def next_token(self, token: object, *, empty: bool) -> str | None:
        """Check and return the `token` of the next page; return None if it is None or "", as on the last page.

        `empty` says that this page lists nothing. Raise WrongResponse if the listing would not end: when its tokens are
        found to repeat, or after over 1000 empty pages in a row. Raise it also for a token that is too long or no text.
        """
        if token is None or token == "":
            return None
        if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
            raise WrongResponse(
                f"{self._what}: the token of the next page is no text of at most {LONGEST_TOKEN} characters"
            )
        if token == self._remembered:
            raise WrongResponse(f"{self._what}: the next page repeats an earlier page")
        self._count += 1
        if self._count == self._next:
            self._remembered, self._next = token, self._next * 2
        self._empty = self._empty + 1 if empty else 0
        if self._empty > EMPTY_PAGES:
            raise WrongResponse(f"{self._what}: {EMPTY_PAGES} pages in a row list nothing")
        return token
