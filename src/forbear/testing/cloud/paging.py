"""Pages of a sorted listing: a token says after which key the next page begins; knows nothing of what is listed."""

import base64
import binascii
from collections.abc import Mapping, Sequence

from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.fields import query_integer

_MOST = 1000


def page_size(query: Mapping[str, str], name: str = "maxResults", *, usual: int = _MOST, most: int = _MOST) -> int:
    """How many entries the query asks for: `usual` where it does not say, and at most `most`."""
    wanted = query_integer(query, name)
    if wanted is not None and wanted < 0:
        raise invalid(f"Invalid value for {name}: {wanted}. It must not be negative.")
    return min(wanted or usual, most)


def token_after(key: str) -> str:
    """The token of the page that begins after `key`."""
    return base64.urlsafe_b64encode(key.encode()).decode()


def key_before(query: Mapping[str, str]) -> str | None:
    """The key that the query's page token stands for, None on the first page."""
    token = query.get("pageToken")
    if not token:
        return None
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise invalid(f"Invalid value for pageToken: '{token[:80]}'. Use the nextPageToken of a page.") from None


def page(
    names: Sequence[str],
    query: Mapping[str, str],
    size_name: str = "maxResults",
    *,
    usual: int = _MOST,
    most: int = _MOST,
) -> tuple[Sequence[str], str | None]:
    """One page of sorted names, and the token of the next one if there is more."""
    before, size = key_before(query), page_size(query, size_name, usual=usual, most=most)
    left = names if before is None else [name for name in names if name > before]
    return left[:size], token_after(left[size - 1]) if len(left) > size else None
