"""Build a request from its parts in words. Errors never repeat text that may be secret."""

import re
from collections.abc import Callable
from urllib.parse import SplitResult, quote, urlsplit

from forbear.answers.errors import NoAnswer
from forbear.http.request import METHODS, Request, find_similar_method

Reader = Callable[[str], bytes | None]
"""A function that returns the content of a file, or of stdin for "-"; None for what it does not read."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SAFE = "/?:@!$&'()*+,;=%[]-._~|^{}`\"<>\\"  # left unchanged: all but spaces, controls and non-ASCII characters
_THIS_MACHINE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?![\w.-])", re.IGNORECASE)
_CLOUD_STORAGE = "https://storage.googleapis.com/storage/v1/b"


class Draft:
    """A request under construction. `body` is None if a part is not known; `read` returns the content of files."""

    def __init__(self, read: Reader | None = None) -> None:
        self._read = read
        self.headers: dict[str, str] = {}
        self.body: bytes | None = b""
        self._count = 0

    def header(self, line: str) -> None:
        """Add a header written as "Name: value"; join values of one name. Raises NoAnswer for any other text."""
        self._count += 1
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name.strip()) or _CONTROL.search(value):
            raise NoAnswer(
                f"header {self._count} is not a header (its text is hidden because it may be secret)",
                "write it as 'Name: value', in quotes",
            )
        name, value = name.strip().lower(), value.strip()
        joint = "; " if name == "cookie" else ", "
        self.headers[name] = f"{self.headers[name]}{joint}{value}" if name in self.headers else value

    def remove_header(self, name: str) -> None:
        """Remove the header `name`, in upper or lower case, if there is one."""
        self.headers.pop(name.strip().lower(), None)

    def data(self, text: str, *, files: bool = True, keep_line_ends: bool = False, joint: bytes = b"&") -> None:
        """Append `text` to the body; `joint` separates it from what the body has already.

        With `files`, "@FILE" stands for the content of FILE, without its line ends and NUL bytes unless
        `keep_line_ends`.
        """
        if files and text.startswith("@"):
            part = self.content(text[1:])
            if part is not None and not keep_line_ends:
                part = part.replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
        else:
            part = text.encode(errors="replace")
        self.add(part, joint)

    def add(self, part: bytes | None, joint: bytes = b"&") -> None:
        """Append bytes to the body, after `joint` if it has some already; None makes the body None for good."""
        if part is None or self.body is None:
            self.body = None
        else:
            self.body = self.body + joint + part if self.body else part

    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or of stdin if `name` is "-"; None if it is not read."""
        return None if self._read is None else self._read(name)

    def build(self, method: str, url: str, query: str = "", *, is_typed: bool = True) -> Request:
        """Return the request for `url`, with `query` added to its own query; raise NoAnswer for a bad method or URL.

        Bad is also a method that is not usual but similar to one, if somebody has typed it.
        """
        if not _TOKEN.fullmatch(method):
            raise NoAnswer(
                "the method must be an HTTP method such as GET or PATCH", "put it first and the URL after it"
            )
        if is_typed and method.upper() not in METHODS:
            near = find_similar_method(method.upper())
            if near is not None:
                raise NoAnswer(f"{method} is no HTTP method", f"write {near}")
            if "://" not in url and "/" not in url:
                raise NoAnswer(
                    f"{method} is neither an HTTP method nor a kind of call that can be explained",
                    "write a METHOD and a URL, or one of grpc, redis, google and aws, and the call",
                )
        parts = _split(url)
        target = percent_encode(parts.path, _SAFE) or "/"
        both = "&".join(filter(None, (parts.query, query)))
        if both:
            target += f"?{percent_encode(both, _SAFE)}"
        host = parts.netloc.rpartition("@")[2]
        return Request(method, host.lower(), target, self.headers, self.body, parts.scheme)


def percent_encode(text: str, safe: str = "") -> str:
    """Percent-encode `text`, also lone surrogates; only ASCII letters, digits, "_.-~" and those in `safe` stay."""
    return quote(text, safe=safe, errors="surrogatepass")


def _split(url: str) -> SplitResult:
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme == "gs":
        raise NoAnswer("a gs:// URL names an object, not a request", f"use {_json_url(url)}")
    if not scheme and url.startswith("/"):
        raise NoAnswer(
            f"the URL must name a host, got {_hide_secrets(url)}", "write it as https://host/path, in quotes"
        )
    if not scheme:
        scheme = "http" if _THIS_MACHINE.match(url) else "https"
        raise NoAnswer(f"the URL has no scheme: {_hide_secrets(url)}", f"use {scheme}://{_hide_secrets(url)}")
    if scheme not in ("http", "https"):
        raise NoAnswer(f"the URL must begin with https:// or http://, got {scheme}://", "name the URL of the HTTP API")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # urlsplit checks the port only on access
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or _CONTROL.search(url) or any(map(str.isspace, parts.netloc)):
        raise NoAnswer(f"this is not a URL: {_hide_secrets(url)}", "write it as https://host/path, in quotes")
    return parts


def _json_url(url: str) -> str:
    """Return the URL in Cloud Storage's JSON API of the bucket or object that a gs:// URL names."""
    bucket, _, name = url.partition("://")[2].partition("/")
    address = f"{_CLOUD_STORAGE}/{percent_encode(bucket) or 'BUCKET'}"
    return f"{address}/o/{percent_encode(name)}" if name else address


def _hide_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret: query, fragment, user and password."""
    return url.partition("?")[0].partition("#")[0].rpartition("@")[2]
