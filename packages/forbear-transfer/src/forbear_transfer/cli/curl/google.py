"""Google credentials for a request: only on request, and only over https to Google's hosts."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from forbear import Policy
from forbear.cli.kit.output import BadInput, Problem
from forbear_transfer.cli.curl.hop import Hop
from forbear_transfer.cli.curl.settings import CurlSettings
from forbear_transfer.errors import NoCredentials
from forbear_transfer.storage.credentials import Credentials, tokens

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_DOMAIN = ".googleapis.com"
_LOG_IN = "log in with `gcloud auth application-default login`, or name a key file with --credentials"


def check_destination(hop: Hop, settings: CurlSettings) -> None:
    """Raise BadInput unless a token that is sent with this request can reach only Google, over verified TLS."""
    url = hop.url
    if url.scheme != "https" or not url.host.endswith(_DOMAIN):
        raise BadInput(
            f"Google credentials are sent only to https URLs of *{_DOMAIN}, got {url.scheme}://{url.host}",
            "leave the credentials out, or send a token of your own with --oauth2-bearer",
        )
    if settings.has("insecure"):
        raise BadInput("-k does not go with Google credentials: anyone could read them", "leave one of them out")
    if "authorization" in hop.headers:
        raise BadInput("Google credentials do not go with an Authorization header", "leave one of them out")


def token_headers(file: Path | None, impersonate: str | None, policy: Policy) -> Mapping[str, str]:
    """Return the headers with a token of the credentials in a key file, or else of the application default ones.

    Raises Problem if there is none, and BadInput if the key file does not exist. Transient errors of the token server
    are retried under `policy`.
    """
    if file is not None and not os.path.lexists(file):
        raise BadInput(f"cannot read the key file {file}: it does not exist", "check the name after --credentials")
    credentials = Credentials(None if file is None else str(file), impersonate, scope=_SCOPE)

    async def headers() -> Mapping[str, str]:
        return await (await tokens(credentials, policy)).headers()

    try:
        obtained = asyncio.run(headers())
    except NoCredentials as error:
        raise Problem(str(error), _LOG_IN) from None
    return {name.lower(): value for name, value in obtained.items()}
