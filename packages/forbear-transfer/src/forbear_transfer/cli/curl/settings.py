"""The settings of a curl line that decide how its request is sent, and where the response goes.

An option that is neither followed nor harmless is an error. It is never ignored in silence.
"""

import re
from collections.abc import Callable
from typing import NoReturn

from forbear.adapters import CurlLine, dataclass, field
from forbear.cli.kit.output import BadInput

CONNECT_TIMEOUT = 30.0
STALL_TIMEOUT = 300.0
"""The default seconds for opening a connection, and for a wait in which no byte comes or goes."""

MAX_REDIRECTS = 50

_HARMLESS = frozenset({
    "basic", "disable", "fail-early", "globoff", "keepalive-time", "no-buffer", "no-keepalive", "no-progress-meter",
    "progress-bar", "retry-connrefused", "show-error", "silent", "ssl-reqd", "styled-output", "tcp-nodelay", "tlsv1",
    "trace-time",
})  # fmt: skip
"""The options that change neither the request nor the output of this command."""

_FLAGS = frozenset({
    "compressed", "create-dirs", "fail", "fail-with-body", "http1.1", "http2", "http2-prior-knowledge", "include",
    "insecure", "ipv4", "ipv6", "location", "path-as-is", "remote-name", "tlsv1.2", "tlsv1.3", "verbose",
})  # fmt: skip

_VALUES = frozenset({
    "cacert", "capath", "cert", "cookie", "dump-header", "interface", "key", "noproxy", "oauth2-bearer", "output",
    "output-dir", "pass", "proxy", "proxy-user", "range", "referer", "unix-socket", "user", "user-agent", "write-out",
})  # fmt: skip

_CURES = {
    "anyauth": "send Basic credentials with -u USER:PASSWORD, or a token with --oauth2-bearer TOKEN",
    "continue-at": "leave it out: a broken download is continued within the run; -r RANGE requests a part",
    "cookie-jar": "send cookies with -b 'NAME=VALUE'",
    "etag-compare": "send the etag with -H 'If-None-Match: ETAG'",
    "http1.0": "leave it out: HTTP/1.1 is the default",
    "http3": "use --http2, or leave it out",
    "limit-rate": "leave it out; --max-time limits the time of an attempt",
    "location-trusted": "use -L: it keeps credentials within their origin",
    "netrc": "name the credentials with -u USER:PASSWORD",
    "remote-header-name": "name the file with -o FILE",
    "retry-all-errors": "leave it out, or vouch that the request may be repeated: --safe 'METHOD URL'",
    "socks5": "use -x socks5://HOST:PORT",
    "socks5-hostname": "use -x socks5h://HOST:PORT",
    "speed-limit": "leave it out; --max-time limits the time of an attempt",
    "stderr": "redirect stderr in the shell; -v prints the headers",
    "time-cond": "send the condition with -H 'If-Modified-Since: DATE'",
    "trace": "use -v, which prints the headers of every attempt",
}
_SAME_CURE = {
    "digest": "anyauth",
    "negotiate": "anyauth",
    "netrc-file": "netrc",
    "netrc-optional": "netrc",
    "speed-time": "speed-limit",
    "trace-ascii": "trace",
}

_GLOB = re.compile(r"\{[^{}]*\}|\[(?:\d+-\d+|[A-Za-z]-[A-Za-z])(?::\d+)?\]")
_ADDRESS = re.compile(r"\[?(?P<host>[^\[\]]*)\]?")


@dataclass(slots=True)
class CurlSettings:
    """The settings of one curl line. `flags` has its flags, and `values` the last value of each option with one.

    Times are in seconds, None where the line sets none. `resolved` maps a host and port ("" and 0 for any) to the
    address and port to connect to.
    """

    flags: set[str] = field(default_factory=set[str])
    values: dict[str, str] = field(default_factory=dict[str, str])
    connect_timeout: float = CONNECT_TIMEOUT
    max_time: float | None = None
    max_redirects: int = MAX_REDIRECTS
    retries: int | None = None
    retry_delay: float | None = None
    retry_timeout: float | None = None
    schemes: frozenset[str] = frozenset({"http", "https"})
    resolved: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict[tuple[str, int], tuple[str, int]])
    cookies: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, line: CurlLine) -> "CurlSettings":
        """Return the settings of a line; raise BadInput for an option that is not supported or has a wrong value."""
        settings = cls()
        for name, value in line.others:
            settings._take(name, value)
        if line.wants_head:
            settings.flags.add("head")
        if "globoff" not in {name for name, _ in line.others} and any(map(_GLOB.search, line.urls)):
            raise BadInput(
                "curl would expand the braces or brackets of this URL into several requests",
                "name one URL; with -g they are sent as they are",
            )
        return settings

    def has(self, *flags: str) -> bool:
        return not self.flags.isdisjoint(flags)

    def _take(self, name: str, value: str) -> None:
        positive = name.removeprefix("no-")
        if name == "show-headers":
            name = "include"
        if name == "cookie":
            self._take_cookie(value)
        elif name in _FLAGS:
            self.flags.add(name)
        elif name in _VALUES:
            self.values[name] = value
        elif name in _PARSERS:
            _PARSERS[name](self, name, value)
        elif name not in _HARMLESS:
            if positive == name:
                cure = _CURES.get(_SAME_CURE.get(name, name), "leave it out, or use curl itself")
                raise BadInput(f"the curl option --{name} is not supported", cure)
            self.flags.discard("include" if positive == "show-headers" else positive)  # --no-location and the like

    def _take_cookie(self, value: str) -> None:
        if "=" not in value:
            raise BadInput("the curl option --cookie FILE is not supported", "send cookies with -b 'NAME=VALUE'")
        self.cookies.append(value)

    def _take_seconds(self, name: str, value: str) -> None:
        attribute, default = _SECONDS[name]
        setattr(self, attribute, _parse_number(name, value) or default)

    def _take_max_redirs(self, name: str, value: str) -> None:
        self.max_redirects = 10**9 if value == "-1" else _parse_whole(name, value)

    def _take_retry(self, name: str, value: str) -> None:
        self.retries = _parse_whole(name, value)

    def _take_proto(self, name: str, value: str) -> None:
        listed = value.removeprefix("=").split(",")
        if not {*listed} <= {"http", "https"}:
            _refuse(name, "a list of http and https, such as =https")
        self.schemes = frozenset(listed)

    def _resolve(self, name: str, value: str) -> None:
        """Add "HOST:PORT:ADDRESS", of which the address may be in brackets and the host may be `*`."""
        host, port, address = _split_address(name, value.removeprefix("+"), "HOST:PORT:ADDRESS")
        first = address.split(",")[0]
        match = _ADDRESS.fullmatch(first)
        if not match or not match["host"]:
            _refuse(name, "HOST:PORT:ADDRESS")
        self.resolved.setdefault(("" if host == "*" else host, _parse_port(name, port)), (match["host"], 0))

    def _connect_to(self, name: str, value: str) -> None:
        """Add "HOST1:PORT1:HOST2:PORT2", in which every part may be empty: any host, any port, the same as before."""
        host, port, rest = _split_address(name, value, "HOST1:PORT1:HOST2:PORT2")
        address, _, other = rest.rpartition(":")
        match = _ADDRESS.fullmatch(address)
        if not match or ":" not in rest:
            _refuse(name, "HOST1:PORT1:HOST2:PORT2")
        self.resolved.setdefault((host, _parse_port(name, port)), (match["host"], _parse_port(name, other)))


_SECONDS = {
    "connect-timeout": ("connect_timeout", CONNECT_TIMEOUT),
    "max-time": ("max_time", None),
    "retry-delay": ("retry_delay", None),
    "retry-max-time": ("retry_timeout", None),
}
"""The attribute for each option that has a number of seconds, and its value for 0, which means the default."""

_PARSERS: dict[str, Callable[[CurlSettings, str, str], None]] = {
    **dict.fromkeys(_SECONDS, CurlSettings._take_seconds),
    "connect-to": CurlSettings._connect_to,
    "max-redirs": CurlSettings._take_max_redirs,
    "proto": CurlSettings._take_proto,
    "resolve": CurlSettings._resolve,
    "retry": CurlSettings._take_retry,
}


def _split_address(name: str, value: str, rule: str) -> tuple[str, str, str]:
    """Return a host in lower case, a port, and the rest; the host may be in brackets."""
    text, host = value, ""
    if text.startswith("["):
        host, _, text = text[1:].partition("]")
    parts = text.split(":", 2)
    if len(parts) != 3 or (host and parts[0]):
        _refuse(name, rule)
    return (host or parts[0]).lower(), parts[1], parts[2]


def _parse_number(name: str, value: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{0,9})?|\.\d{1,9}", value, re.ASCII):
        _refuse(name, "a number of seconds")
    return float(value)


def _parse_whole(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        _refuse(name, "a whole number")
    return int(value)


def _parse_port(name: str, value: str) -> int:
    if value in ("", "*"):
        return 0
    port = _parse_whole(name, value)
    return port if 0 < port < 65536 else _refuse(name, "a port from 1 to 65535")


def _refuse(name: str, rule: str) -> NoReturn:
    raise BadInput(f"the curl option --{name} needs {rule}", "see `man curl`")
