"""The address of a Redis or Valkey server, parsed from a URL; its texts never contain the password."""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from forbear.shared_budget.script import Command
from forbear.text.redact import HIDDEN

_PORT = 6379
_FORMS = "redis://[user:password@]host[:6379][/0], rediss://... (TLS) or unix://[user:password@]/path[?db=0]"


class Address(NamedTuple):
    """A server: a Unix socket at `path`, or `host` and `port`; `tls` says that the connection is encrypted.

    `user` and `password` are None if the URL has none. `db` is the number of the database.
    """

    host: str
    port: int
    path: str | None
    db: int
    user: str | None
    password: str | None
    tls: bool

    @property
    def shown(self) -> str:
        """The URL without user and password."""
        if self.path is not None:
            return f"unix://{self.path}" + (f"?db={self.db}" if self.db else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.tls else 'redis'}://{host}:{self.port}/{self.db}"

    def greeting(self) -> list[Command]:
        """Return the commands that come first on a connection: AUTH and SELECT, as far as they are needed."""
        commands: list[Command] = []
        if self.password is not None:
            user = () if self.user is None else (self.user.encode(),)
            commands.append((b"AUTH", *user, self.password.encode()))
        if self.db:
            commands.append((b"SELECT", b"%d" % self.db))
        return commands

    def hidden(self, text: str) -> str:
        """Return `text` without user and password, in case that a server repeats them."""
        return without(text, self.user, self.password)


def without(text: str, user: str | None, password: str | None) -> str:
    """Return `text` without the password, and without the user where it is a word of its own."""
    if password:
        text = text.replace(password, HIDDEN)
    return re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", HIDDEN, text) if user else text


def parse_url(name: str, url: str) -> Address:
    """Return the address in `url`; `name` is that of the parameter or variable, for the error.

    Raises ValueError for a URL of another form. Its text does not contain the URL, which may have a password.
    """
    if "\0" in url:
        raise _wrong(name, "it has a zero character")
    try:
        url.encode()  # a UnicodeEncodeError is a ValueError
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _wrong(name, "it cannot be parsed") from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise _wrong(name, "its scheme is another one" if parts.scheme else "it has no scheme")
    user = unquote(parts.username) if parts.username else None
    password = None if parts.password is None else unquote(parts.password)
    if user is not None and password is None:
        raise _wrong(name, "it has a user without a password")
    unknown = sorted(set(query) - {"db"})
    if unknown:
        raise _wrong(name, f"its option `{unknown[0][:40]}` is not known; pass a client object for other options")
    if parts.fragment:
        raise _wrong(name, "it has a fragment (#)")
    if parts.scheme == "unix":
        if not parts.path or host:
            raise _wrong(name, "it has no path" if not parts.path else "its path must begin with a slash")
        return Address("", 0, unquote(parts.path), _db(name, query.get("db", "")), user, password, tls=False)
    if not host:
        raise _wrong(name, "it has no host")
    if port == 0:
        raise _wrong(name, "its port is 0")
    in_path = parts.path.removeprefix("/")
    if in_path and "db" in query:
        raise _wrong(name, "it names the database twice")
    db = _db(name, in_path or query.get("db", ""))
    return Address(host, port or _PORT, None, db, user, password, parts.scheme == "rediss")


def _db(name: str, text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        raise _wrong(name, "its database is not a number")
    return int(text or 0)


def _wrong(name: str, why: str) -> ValueError:
    return ValueError(f"`{name}` must be a URL such as {_FORMS}, but {why}")
