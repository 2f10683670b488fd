"""Credentials: who asks. google-auth finds and refreshes them; here they are named, and made into a header."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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


class GoogleTokens:
    """The tokens of one of google-auth's credentials; however many tasks ask, one refresh is under way at a time."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """The Authorization header, and that of the quota project."""
        if not self._credentials.valid:
            async with self._lock:
                if not self._credentials.valid:
                    await self._refresh()
        found: dict[str, str] = {}
        self._credentials.apply(found)
        return found

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        """Refresh, unless another task has done so meanwhile."""
        async with self._lock:
            found: dict[str, str] = {}
            self._credentials.apply(found)
            if found == rejected:
                await self._refresh()
        return True

    async def _refresh(self) -> None:
        from google.auth.transport.requests import Request

        await asyncio.to_thread(self._credentials.refresh, Request())


def tokens(wanted: Credentials) -> Tokens:
    """The source of tokens that `wanted` describes; google-auth's DefaultCredentialsError where there is none."""
    if wanted.anonymous:
        return NoTokens()
    try:
        import google.auth
        from google.auth import impersonated_credentials
    except ModuleNotFoundError as error:
        text = 'credentials need google-auth; install it with: pip install "forbear[transfer]"'
        raise ModuleNotFoundError(text, name="google.auth") from error
    load: Any = google.auth
    if wanted.file is None:
        found = load.default(scopes=[SCOPE])[0]
    else:
        found = load.load_credentials_from_file(wanted.file, scopes=[SCOPE])[0]
    if wanted.impersonate is not None:
        act: Any = impersonated_credentials
        found = act.Credentials(found, wanted.impersonate, [SCOPE])
    return GoogleTokens(found)
