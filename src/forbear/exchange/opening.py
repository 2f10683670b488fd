"""Opening: how an exchange is set up for a request, one way for all clients. It sends nothing.

Whether the request needs a token, which one, and whether that token makes it repeatable, is decided here and only here.
"""

from forbear.exchange.exchange import Exchange
from forbear.exchange.settings import new_token
from forbear.exchange.signature import is_signed
from forbear.http.method import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forbear.exchange.body import Body
    from forbear.exchange.exchange import Start
    from forbear.exchange.settings import Settings
    from forbear.http.request import Request

Token = tuple[str, str]
"""A header and its value, to be added to all attempts of a mutation."""


def is_marked(settings: "Settings", method: str, where: "Callable[[], tuple[str, str]]") -> bool:
    """Whether a request is to carry a token; `where` gives its host and its target (path and query on the wire)."""
    if method in READS:
        return False
    _, service = settings.resolve(*where())
    return settings.token_header(service, method) is not None


def opened(
    settings: "Settings",
    start: "Start",
    method: str,
    where: tuple[str, str],
    headers: "Mapping[str, str]",
    body: "Body",
    describe: "Callable[[], Request]",
) -> "tuple[Exchange, Token | None]":
    """The exchange of a request, and the token to be added to it; `headers` are found by names of any case."""
    host, target = where
    policy, service = settings.resolve(host, target)
    header = settings.token_header(service, method)
    protected = header is not None and settings.protects(service)
    if header is not None and not protected and is_signed(target, headers.get("authorization", "")):
        header = None
    given = None if header is None else headers.get(header)
    token = None if header is None or given is not None else (header, new_token())
    keyed = protected and (given is None or given.strip() != "")
    return Exchange(policy, service, describe, body, start, keyed=keyed), token
