"""Credentials, and the tokens that google-auth obtains for them, as headers of requests."""

import asyncio
import os
import stat
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from forbear import Policy, report
from forbear.adapters import HiddenText, attach_report, dataclass
from forbear_transfer.errors import NoCredentials
from forbear_transfer.storage.bodies import ANSWER, seconds_of
from forbear_transfer.storage.endpoint import is_loopback
from forbear_transfer.threads import in_thread

_LOG_IN = (
    "log in with `gcloud auth application-default login`, name a key file, or, for public data and emulators, go "
    "without: Credentials(anonymous=True)"
)
SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
_PIECE = 64 * 1024
_LARGEST_FILE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """The description of credentials, without secrets, so that it can be sent to other processes.

    `file` is a key file of a service account or another file that google-auth reads, None for the application default
    credentials. `impersonate` is the e-mail of a service account to act as. `anonymous` sends no credentials. `scope`
    is what the tokens allow, by default Cloud Storage only.

    >>> Credentials(anonymous=True) == ANONYMOUS
    True
    """

    file: str | None = None
    impersonate: str | None = None
    anonymous: bool = False
    scope: str = SCOPE

    def __post_init__(self) -> None:
        if self.anonymous and (self.file or self.impersonate):
            raise ValueError("`anonymous` credentials have no `file` and cannot `impersonate`: leave those out")


ANONYMOUS = Credentials(anonymous=True)
"""No credentials: requests are sent without a token."""


class Tokens:
    """A source of the headers that authorise requests. This base class is for anonymous requests and has no headers."""

    async def headers(self) -> Mapping[str, str]:
        """Return no headers. A subclass returns those for the next request, refreshed before they expire."""
        return {}

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """Return False: there are no other headers.

        A subclass replaces the headers `rejected`, which the server refused (401), and returns True.
        """
        return False


NO_TOKENS = Tokens()


class GoogleTokens(Tokens):
    """The tokens of google-auth credentials; all tasks share one refresh at a time.

    Transient errors, such as a token server that is down for a moment, are retried under `policy`.
    """

    def __init__(self, credentials: Any, policy: Policy) -> None:
        self._credentials = credentials
        self._seconds = seconds_of(policy)
        policy = policy.with_on(_is_transient).with_repeatable(True).with_name("refresh the credentials")
        self._policy = policy.with_attempt_timeout(None)  # each refresh has its own timeout of `seconds`
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """Return the Authorization header, and the header of the quota project if there is one.

        Refresh a token that is not valid any more; raise NoCredentials if that fails.
        """
        if not self._credentials.valid:
            async with self._lock:
                if not self._credentials.valid:
                    await self._refresh()
        return self._make_headers()

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """Refresh the token, unless another task has done so since it was `rejected`, and return True.

        Raise NoCredentials if that fails.
        """
        async with self._lock:
            if self._make_headers() == rejected:
                await self._refresh()
        return True

    def _make_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        self._credentials.apply(headers)
        return {name: HiddenText(value) for name, value in headers.items()}

    async def _refresh(self) -> None:
        from google.auth import exceptions
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        async def refresh() -> None:
            try:
                async with asyncio.timeout(self._seconds):
                    await in_thread(self._credentials.refresh, Request(token_session()))
            except TimeoutError as error:
                text = f"the token server did not respond within {self._seconds:g} s"
                untyped: Any = exceptions
                raise untyped.TransportError(text, retryable=True) from error

        try:
            await self._policy.acall(refresh)
        except GoogleAuthError as error:
            failure = NoCredentials(f"no token can be obtained for the credentials: {_describe(error)}", _LOG_IN)
            tried = report(error)
            if tried is not None:
                attach_report(failure, tried)
            raise failure from error


async def tokens(credentials: Credentials, policy: Policy) -> Tokens:
    """Return the source of tokens for credentials; NoCredentials if google-auth finds or accepts none.

    Anonymous ones need no google-auth; without it, all others raise ModuleNotFoundError.
    """
    if credentials.anonymous:
        return NO_TOKENS
    try:
        from google.auth.exceptions import GoogleAuthError
    except ModuleNotFoundError as error:
        text = 'credentials need google-auth; install it with: pip install "forbear[transfer]"'
        raise ModuleNotFoundError(text, name="google.auth") from error
    try:
        async with asyncio.timeout(seconds_of(policy)):
            loaded = await in_thread(_load, credentials)
    except (GoogleAuthError, OSError, ValueError) as error:
        file = credentials.file
        where = "no credentials were found" if file is None else f"cannot use the credentials in {file}"
        raise NoCredentials(f"{where}: {_describe(error)}", _LOG_IN) from error
    return GoogleTokens(loaded, policy)


def _load(credentials: Credentials) -> Any:
    """Load the google-auth credentials for a description: from its file, or else the application default ones.

    If the description has `impersonate`, return credentials that act as that account.
    """
    import google.auth
    from google.auth import impersonated_credentials

    _check_file(credentials.file or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
    load: Any = google.auth
    if credentials.file is None:
        loaded = load.default(scopes=[credentials.scope])[0]
    else:
        with warnings.catch_warnings():
            # It warns of files from other people; the user has named this one.
            warnings.simplefilter("ignore", DeprecationWarning)
            loaded = load.load_credentials_from_file(credentials.file, scopes=[credentials.scope])[0]
    if credentials.impersonate is not None:
        act: Any = impersonated_credentials
        loaded = act.Credentials(loaded, credentials.impersonate, [credentials.scope])
    return loaded


def _check_file(path: str | None) -> None:
    """Raise ValueError for a device or a large file, which google-auth would read into memory; a pipe may be right."""
    with suppress(OSError):
        found = os.stat(path or os.devnull)
        if path and (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode) or found.st_size > _LARGEST_FILE):
            raise ValueError(f"{path} is no file of credentials: it is a device, or larger than 1 MiB")


def _is_transient(error: Exception) -> bool:
    from google.auth.exceptions import GoogleAuthError, TransportError

    return isinstance(error, TransportError) or (
        isinstance(error, GoogleAuthError) and bool(getattr(error, "retryable", False))
    )


def _describe(error: Exception) -> str:
    """Return the first line of the first argument of a google-auth error; another argument may be a whole response.

    If it has no argument, return the name of its type.
    """
    return str(error.args[0] if error.args else type(error).__name__).split("\n", 1)[0]


def token_session() -> Any:
    """Return a requests session for token servers: they may be hostile, and the requests have secrets.

    It follows no redirect, sends requests for this machine through no proxy, and reads at most 1 MiB: a longer response
    raises RequestException.
    """
    import requests  # expensive to import, and only a few requests an hour need it

    class TokenSession(requests.Session):
        def request(self, method: Any, url: Any, *positional: Any, **options: Any) -> requests.Response:
            host = urlsplit(str(url)).hostname or ""
            if is_loopback(host):
                options["proxies"] = {**(options.get("proxies") or {}), "no_proxy": host}
            options.update(allow_redirects=False, stream=True)
            response = super().request(method, url, *positional, **options)
            with response:
                body = bytearray()
                for piece in response.iter_content(_PIECE):
                    body += piece
                    if len(body) > ANSWER:
                        text = f"the response to a request for a token goes on after {ANSWER} bytes"
                        raise requests.exceptions.RequestException(text)
            response._content = bytes(body)
            return response

    return TokenSession()
