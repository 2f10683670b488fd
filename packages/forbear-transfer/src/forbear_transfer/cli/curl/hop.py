"""One request of a run: the one on the command line, with Google credentials, and each to which a redirect leads."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from forbear import Policy
from forbear.adapters import CurlLine, Request, dataclass, replace
from forbear.cli.kit.output import BadInput, Problem
from forbear_transfer.cli.curl.content import RequestContent
from forbear_transfer.cli.curl.settings import CurlSettings

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OF_BODY = ("content-type", "content-length", "content-encoding", "content-md5", "transfer-encoding")
_SECRETS = ("authorization", "cookie", "proxy-authorization")
_SECRET_WORDS = ("key", "token", "secret", "auth", "credential", "signature")
_DATA_TYPE = "application/x-www-form-urlencoded"
_JSON_TYPE = "application/json"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_DOMAIN = ".googleapis.com"
_LOG_IN = "log in with `gcloud auth application-default login`, or name a key file with --credentials"


class BadRedirect(Exception):
    """A redirect that cannot be followed; the text says why."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A request to send: method, URL, headers by lower-case names, and body.

    `target` is the exact path and query to send, None for that of `url`.
    """

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    content: RequestContent
    target: str | None = None

    @property
    def request(self) -> Request:
        """The request as the tables judge it."""
        target = self.target or self.url.raw_path.decode("ascii")
        host, port, scheme = self.url.host, self.url.port, self.url.scheme
        return Request(self.method, host, target, self.headers, self.content.in_memory, scheme, port)

    def message(self, extensions: Mapping[str, Any]) -> httpx.Request:
        """Return the request for httpx, with a body that begins at its start, and with these extensions."""
        own = {} if self.target is None else {"target": self.target.encode("ascii")}
        kind = self.headers.get("content-type", "")
        lacks_boundary = self.content.form is not None and kind != "" and "boundary=" not in kind.lower()
        headers = [
            (name.encode("ascii"), value.encode("utf-8", "surrogateescape"))
            for name, value in self.headers.items()
            if not (lacks_boundary and name == "content-type")
        ]
        message = httpx.Request(
            self.method, self.url, headers=headers, extensions={**extensions, **own}, **self.content.arguments()
        )
        if lacks_boundary:  # like curl, complete the header that many API documentations have
            boundary = message.headers["content-type"].partition(";")[2].strip()
            message.headers["content-type"] = f"{kind.rstrip('; ')}; {boundary}"
        if "transfer-encoding" in self.headers:  # httpx adds the length all the same
            message.headers.pop("content-length", None)
        return message

    def with_headers(self, headers: Mapping[str, str]) -> "Hop":
        return replace(self, headers={**self.headers, **headers})


def first_hop(line: CurlLine, request: Request, settings: CurlSettings, content: RequestContent) -> Hop:
    """Return the request of a line, with the headers that curl adds; raise BadInput for a wrong URL or option."""
    if request.scheme not in settings.schemes:
        raise BadInput(f"--proto does not allow {request.scheme}", f"use {' or '.join(sorted(settings.schemes))}")
    try:
        url = httpx.URL(f"{request.scheme}://{request.host}{request.target}")
    except httpx.InvalidURL as error:
        raise BadInput(f"this is not a URL: {error}", "write it as https://host/path, in quotes") from None
    path = request.target.partition("?")[0]
    exact = settings.has("path-as-is") or not {".", ".."} & {*path.split("/")}
    headers = dict(request.headers)
    if settings.has("compressed"):  # lines copied from a browser list encodings that cannot be decoded here
        headers["accept-encoding"] = "gzip, deflate"
    for name, value in _make_defaults(line, settings).items():
        if name not in line.removed and not (name == "user-agent" and not value):  # -A '' removes it
            headers.setdefault(name, value)
    if request.target.encode("ascii") == url.raw_path:
        exact = False
    hop = Hop(request.method, url, headers, content, request.target if exact else None)
    _check_length(hop)
    return hop


def next_hop(hop: Hop, status: int, location: str | None, settings: CurlSettings) -> Hop | None:
    """Return the request to which a response redirects, None if it does not; BadRedirect if it must not be followed.

    A 303 is followed by GET, or HEAD after HEAD; so is a POST answered 301 or 302. All else keeps method and body. For
    another origin, credentials, cookies and headers whose names sound secret are left out.
    """
    if status not in _REDIRECTS or not location:
        return None
    try:
        url = hop.url.join(location).copy_with(username=None, password=None, fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise BadRedirect("the Location of a redirect is not a URL") from None
    if url.scheme not in settings.schemes or not url.host:
        raise BadRedirect(f"a redirect leads to the scheme {url.scheme or 'without a host'}, which is not allowed")
    headers = {name: value for name, value in hop.headers.items() if name != "host"}
    changed = replace(hop, url=url, target=None)
    if changed.request.origin != hop.request.origin:
        headers = {name: value for name, value in headers.items() if not _is_secret(name)}
    if (status == 303 and hop.method != "HEAD") or (status in (301, 302) and hop.method == "POST"):
        headers = {name: value for name, value in headers.items() if name not in _OF_BODY}
        return replace(changed, method="GET", headers=headers, content=RequestContent())
    return replace(changed, headers=headers)


def _is_secret(name: str) -> bool:
    return name in _SECRETS or any(word in name for word in _SECRET_WORDS)


def _check_length(hop: Hop) -> None:
    stated = hop.headers.get("content-length")
    if stated is None or "transfer-encoding" in hop.headers:
        return
    others = {name: value for name, value in hop.headers.items() if name != "content-length"}
    length = replace(hop, headers=others).message({}).headers.get("content-length", "0")
    if stated != length:
        raise BadInput(f"the header Content-Length is not the length of the body, {length} bytes", "leave it out")


def _make_defaults(line: CurlLine, settings: CurlSettings) -> dict[str, str]:
    values = settings.values
    headers = {"user-agent": values.get("user-agent", f"forbear/{version('forbear')}")}
    headers["accept"] = _JSON_TYPE if line.sends_json else "*/*"
    if line.sends_data:
        headers["content-type"] = _JSON_TYPE if line.sends_json else _DATA_TYPE
    if "referer" in values:
        headers["referer"] = values["referer"]
    if "range" in values:
        headers["range"] = f"bytes={values['range']}"
    if settings.cookies:
        headers["cookie"] = "; ".join(settings.cookies)
    authorization = _find_authorization(line.urls[0], values)
    if authorization is not None:
        headers["authorization"] = authorization
    for name, value in headers.items():
        if any(character < " " or character == "\x7f" for character in value):
            raise BadInput(f"the value of the header {name} has control characters", "leave them out")
    return headers


def _find_authorization(url: str, values: Mapping[str, str]) -> str | None:
    """Return the Authorization header of `--oauth2-bearer`, of `-u`, or of the user in the URL; None without any."""
    if "oauth2-bearer" in values:
        return f"Bearer {values['oauth2-bearer']}"
    parts = urlsplit(url)
    user = values.get("user")
    if user is None and parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    if user is None:
        return None
    if ":" not in user:
        raise BadInput("-u needs USER:PASSWORD: no password can be typed here", "add a colon and the password")
    return f"Basic {b64encode(user.encode('utf-8', 'surrogateescape')).decode()}"


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
    from forbear_transfer.errors import NoCredentials
    from forbear_transfer.storage.credentials import Credentials, tokens

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
