"""Retries for aiobotocore that know what may be repeated: `install(client)`; docs/aws.md says more.

Its errors prove less than those of botocore: it raises the one for a refused connection also where a request was sent
and executed. And aiohttp, which sends below it, repeats GET, HEAD, PUT and DELETE by itself when a connection breaks.
That is turned off here, or `install` refuses.
"""

from functools import partial
from importlib import import_module
from typing import Any, TypeVar

try:
    import aiohttp

    _library: Any = import_module("aiobotocore.client")  # it holds botocore back, so no checker of types has it
    _senders: Any = import_module("aiobotocore.httpsession")
except ImportError as error:
    raise ImportError(
        'forbear.clients.aiobotocore needs aiobotocore; install it with: pip install "forbear[aiobotocore]"'
    ) from error
from botocore import exceptions

from forbear.clients._botocore import outcomes
from forbear.clients._botocore.events import AsyncRetries
from forbear.clients._botocore.install import choose_policy, install_in, uninstall_from
from forbear.core.chain import read
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from forbear.run.derive import ClientOptions
    from forbear.services.aws.vouch import SafeCalls

T = TypeVar("T")

_UNMADE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""The errors that aiohttp raises only while it connects."""


def install(
    client: T, policy: Policy | None = None, *, safe: "SafeCalls" = (), **options: "Unpack[ClientOptions]"
) -> T:
    """Put retries into a client of aiobotocore or aioboto3, or a resource of aioboto3, and return it.

    The parameters are those of `forbear.clients.botocore.install`, which has the rules. Sessions are refused: their
    clients are made later, each with a sender of its own. RuntimeError if the repeats of aiohttp cannot be turned off
    in this version of aiobotocore.
    """
    sender = _find_sender(_find_client(client))
    rule = choose_policy(policy, options)
    install_in(client, _library.AioBaseClient, rule, safe, AsyncRetries(verdict_of_lost))
    if sender is not None:
        sender._get_session = partial(_get_quiet_session, sender)
    return client


def uninstall(client: T) -> T:
    """Take forbear's retries out of a client, and return it; aiobotocore's own, and those of aiohttp, count again."""
    uninstall_from(client, _library.AioBaseClient)
    sender = _find_sender(_find_client(client))
    if sender is not None:
        del sender._get_session  # that of its class counts again
        sessions: dict[Any, Any] = sender._sessions or {}
        for session in sessions.values():
            session._retry_connection = True
    return client


def verdict_of_lost(error: Exception) -> Verdict:
    """Return the verdict on an exception of aiobotocore; NOT_EXECUTED only where aiohttp made no connection."""
    verdict = outcomes.verdict_of_lost(error)
    cause: object = read(error, "kwargs").get("error") if isinstance(error, exceptions.BotoCoreError) else None
    if isinstance(cause, _UNMADE) and not isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return verdict if verdict.kind is Kind.PERMANENT else NOT_EXECUTED
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED else verdict


def _find_client(client: object) -> Any:
    """Return the client that `client` is, or has as a resource; TypeError for anything else."""
    owner = client if isinstance(client, _library.AioBaseClient) else read(read(client, "meta"), "client")
    if not isinstance(owner, _library.AioBaseClient):
        raise TypeError(f"`client` must be a client of aiobotocore, or a resource of aioboto3, got {client!r}")
    return owner


def _find_sender(client: Any) -> Any:
    """Return what sends for a client by aiohttp; None for another library, which repeats nothing by itself."""
    sender = read(read(client, "_endpoint"), "http_session")
    if sender is not None and not isinstance(sender, _senders.AIOHTTPSession):
        return None
    if not hasattr(sender, "_get_session") or not hasattr(sender, "_sessions"):
        raise RuntimeError(
            "install cannot turn off the repeats of aiohttp in this version of aiobotocore, which would execute "
            "requests twice; use forbear.clients.botocore in a thread instead"
        )
    return sender


async def _get_quiet_session(sender: Any, proxy_url: Any) -> aiohttp.ClientSession:
    """Return the session of aiohttp for a proxy, as the sender's class makes it, but one that repeats nothing."""
    session: aiohttp.ClientSession = await sender.__class__._get_session(sender, proxy_url)
    session._retry_connection = False
    return session
