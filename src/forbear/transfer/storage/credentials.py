"""Credentials: who asks. google-auth finds and refreshes them; here they are named, and made into a header."""

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from forbear.core.report import attach, report
from forbear.policy import Policy
from forbear.transfer.errors import NoCredentials
from forbear.transfer.storage.bodies import seconds_of
from forbear.transfer.threads import in_thread

_LOG_IN = (
    "log in with `gcloud auth application-default login`, name a key file, or, for public data and emulators, go "
    "without: Credentials(anonymous=True)"
)
SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Which credentials to use: a description that can be sent to other processes, which find the same there.

    `file` is that of a service account or any other that google-auth reads, None for the application default ones;
    `impersonate` the e-mail of a service account to act as; `anonymous` sends none.
    """

    file: str | None = None
    impersonate: str | None = None
    anonymous: bool = False

    def __post_init__(self) -> None:
        if self.anonymous and (self.file or self.impersonate):
            raise ValueError("`anonymous` credentials have no `file` and cannot `impersonate`: leave those out")


ANONYMOUS = Credentials(anonymous=True)


class Tokens(Protocol):
    """Where a session gets the headers that authorise its requests."""

    async def headers(self) -> Mapping[str, str]:
        """The headers for the next request; refreshed before they expire."""
        ...

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """Get others than `rejected`, which the server did not take (401); False where there are no others."""
        ...


class NoTokens:
    """Anonymous."""

    async def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """There is nothing to renew."""
        return False


NO_TOKENS = NoTokens()


class GoogleTokens:
    """The tokens of one of google-auth's credentials; however many tasks ask, one refresh is under way at a time.

    What passes, such as a token server that is not there for a moment, is tried again under `policy`.
    """

    def __init__(self, credentials: Any, policy: Policy) -> None:
        self._credentials = credentials
        self._seconds = seconds_of(policy)
        policy = policy.with_on(_is_passing).with_repeatable(True).with_name("refresh the credentials")
        self._policy = policy.with_attempt_timeout(None)  # each refresh has its own, of `seconds`
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """The Authorization header, and that of the quota project."""
        if not self._credentials.valid:
            async with self._lock:
                if not self._credentials.valid:
                    await self._refresh()
        return self._applied()

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """Refresh, unless another task has done so meanwhile."""
        async with self._lock:
            if self._applied() == rejected:
                await self._refresh()
        return True

    def _applied(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self._credentials.apply(found)
        return found

    async def _refresh(self) -> None:
        from google.auth import exceptions
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        from forbear.transfer.storage.token_requests import TokenSession

        async def refresh() -> None:
            try:
                async with asyncio.timeout(self._seconds):
                    await in_thread(self._credentials.refresh, Request(TokenSession()))
            except TimeoutError as error:
                text = f"the server of tokens was not done after {self._seconds:g} s"
                untyped: Any = exceptions
                raise untyped.TransportError(text, retryable=True) from error

        try:
            await self._policy.acall(refresh)
        except GoogleAuthError as error:
            failure = NoCredentials(f"no token is to be had for the credentials: {_text(error)}", _LOG_IN)
            tried = report(error)
            if tried is not None:
                attach(failure, tried)
            raise failure from error


async def tokens(wanted: Credentials, policy: Policy) -> Tokens:
    """The source of tokens that `wanted` describes; NoCredentials where there is none."""
    if wanted.anonymous:
        return NO_TOKENS
    try:
        from google.auth.exceptions import GoogleAuthError
    except ModuleNotFoundError as error:
        text = 'credentials need google-auth; install it with: pip install "forbear[transfer]"'
        raise ModuleNotFoundError(text, name="google.auth") from error
    try:
        async with asyncio.timeout(seconds_of(policy)):
            found = await in_thread(_found, wanted)
    except (GoogleAuthError, OSError, ValueError) as error:
        where = "no credentials were found" if wanted.file is None else f"cannot use the credentials in {wanted.file}"
        raise NoCredentials(f"{where}: {_text(error)}", _LOG_IN) from error
    return GoogleTokens(found, policy)


def _found(wanted: Credentials) -> Any:
    """What google-auth makes of it."""
    import google.auth
    from google.auth import impersonated_credentials

    load: Any = google.auth
    if wanted.file is None:
        found = load.default(scopes=[SCOPE])[0]
    else:
        with warnings.catch_warnings():
            # It warns of files that come from others; this one was named by the user.
            warnings.simplefilter("ignore", DeprecationWarning)
            found = load.load_credentials_from_file(wanted.file, scopes=[SCOPE])[0]
    if wanted.impersonate is not None:
        act: Any = impersonated_credentials
        found = act.Credentials(found, wanted.impersonate, [SCOPE])
    return found


def _is_passing(error: Exception) -> bool:
    from google.auth.exceptions import GoogleAuthError, TransportError

    return isinstance(error, TransportError) or (
        isinstance(error, GoogleAuthError) and bool(getattr(error, "retryable", False))
    )


def _text(error: Exception) -> str:
    """The first part of an error of google-auth, which may have the whole reply for a second one."""
    return str(error.args[0] if error.args else type(error).__name__).split("\n", 1)[0]
