"""Parse a curl command line into the request that it would send. curl itself is not needed.

Options that cannot change the answer are ignored. An unknown option is an error, because it might change the answer.
"""

import shlex
from collections.abc import Iterator, Sequence

from forbear.cli.explain.draft import Draft, encoded
from forbear.cli.output import BadInput
from forbear.http.request import Request

_LONG_NAMES = {
    "A": "user-agent", "b": "cookie", "C": "continue-at", "c": "cookie-jar", "D": "dump-header", "d": "data",
    "E": "cert", "e": "referer", "F": "form", "f": "fail", "G": "get", "g": "globoff", "H": "header", "I": "head",
    "i": "include", "J": "remote-header-name", "k": "insecure", "L": "location", "m": "max-time", "N": "no-buffer",
    "n": "netrc", "O": "remote-name", "o": "output", "q": "disable", "r": "range", "S": "show-error", "s": "silent",
    "T": "upload-file", "U": "proxy-user", "u": "user", "v": "verbose", "w": "write-out", "X": "request", "x": "proxy",
    "Y": "speed-limit", "y": "speed-time", "z": "time-cond", "#": "progress-bar", "0": "http1.0", "4": "ipv4",
    "6": "ipv6",
}  # fmt: skip

_READ = frozenset({
    "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "form", "form-string", "header", "json",
    "request", "upload-file", "url", "url-query",
})  # fmt: skip

_READ_FLAGS = frozenset({"get", "head"})

_IGNORED = frozenset({
    "aws-sigv4", "cacert", "capath", "cert", "cert-type", "ciphers", "connect-timeout", "connect-to", "continue-at",
    "cookie", "cookie-jar", "curves", "dns-servers", "dump-header", "etag-compare", "etag-save", "interface",
    "keepalive-time", "key", "key-type", "limit-rate", "max-filesize", "max-redirs", "max-time", "netrc-file",
    "noproxy", "oauth2-bearer", "output", "output-dir", "pass", "pinnedpubkey", "proto", "proxy", "proxy-header",
    "proxy-user", "range", "referer", "resolve", "retry", "retry-delay", "retry-max-time", "socks5",
    "socks5-hostname", "speed-limit", "speed-time", "stderr", "time-cond", "tls-max", "trace", "trace-ascii",
    "unix-socket", "user", "user-agent", "write-out",
})  # fmt: skip

_IGNORED_FLAGS = frozenset({
    "anyauth", "basic", "compressed", "create-dirs", "digest", "disable", "fail", "fail-early", "fail-with-body",
    "globoff", "http1.0", "http1.1", "http2", "http2-prior-knowledge", "http3", "include", "insecure", "ipv4", "ipv6",
    "location", "location-trusted", "negotiate", "netrc", "netrc-optional", "no-buffer", "no-keepalive",
    "no-progress-meter", "path-as-is", "progress-bar", "raw", "remote-header-name", "remote-name", "retry-all-errors",
    "retry-connrefused", "show-error", "show-headers", "silent", "ssl-reqd", "styled-output", "tcp-nodelay",
    "tlsv1", "tlsv1.2", "tlsv1.3", "trace-time", "verbose",
})  # fmt: skip

_WITH_VALUE = _READ | _IGNORED
_FLAGS = _READ_FLAGS | _IGNORED_FLAGS
_END_OF_COMMAND = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<"})


def is_curl(words: Sequence[str]) -> bool:
    """Return whether these are the words of a curl command line, or the whole line is in the first word.

    It must begin with `curl` or `curl.exe`, which may have a path before it.
    """
    first = words[0].split(maxsplit=1)[:1] if words else []
    return first != [] and first[0].replace("\\", "/").rpartition("/")[2] in ("curl", "curl.exe")


def parse(words: Sequence[str]) -> tuple[Request, list[str]]:
    """Return the request that a curl command line would send, and the ignored options.

    The line comes as words, or as one word that has the whole line. Raises BadInput if it cannot be understood.
    """
    line = _Line()
    for name, value in _options(_shell_words(words)):
        line.take(name, value)
    return line.request(), line.ignored


def _shell_words(words: Sequence[str]) -> list[str]:
    """Return the words after "curl"; split a line in one word as a shell would, up to a pipe, a redirection or ";".

    Raises BadInput for a quote without its end.
    """
    if len(words) > 1:
        return list(words[1:])
    try:
        split = shlex.split(words[0].replace("\\\r\n", " ").replace("\\\n", " "))[1:]
    except ValueError as error:
        raise BadInput(f"the curl line cannot be read: {error}".lower(), "close every quote") from None
    end = next((index for index, word in enumerate(split) if word in _END_OF_COMMAND), len(split))
    return split[:end]


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options by their long names with their values ("" for flags); a word without a dash counts as `--url`.

    Raises BadInput for an unknown option or a missing value.
    """
    left = iter(words)
    for word in left:
        if word.startswith("--") and word != "--":
            name = word[2:].partition("=")[0]
            if word[2:] in _WITH_VALUE:
                yield name, _value(left, word)
            elif word[2:] in _FLAGS or (word.startswith("--no-") and word[5:] in _FLAGS):
                yield name, ""
            else:
                raise _unknown(f"--{name}")
        elif word.startswith("-") and len(word) > 1 and word != "--":
            yield from _short_options(word[1:], left)
        elif word != "--":
            yield "url", word


def _short_options(letters: str, left: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the options in a word such as `-sSXPATCH`, given without the dash, by their long names with their values.

    A value that is not in the word itself is taken from the next word in `left`.
    """
    for index, letter in enumerate(letters):
        name = _LONG_NAMES.get(letter)
        if name is None:
            raise _unknown(f"-{letter}")
        if name in _WITH_VALUE:
            yield name, letters[index + 1 :] or _value(left, f"-{letter}")
            return
        yield name, ""


def _value(left: Iterator[str], option: str) -> str:
    value = next(left, None)
    if value is None:
        cure = "put options of forbear before curl" if option == "--json" else "check that nothing was cut off"
        raise BadInput(f"the curl option {option} needs a value", cure)
    return value


def _unknown(option: str) -> BadInput:
    return BadInput(f"the curl option {option} is not known here", "leave it out if it does not change the request")


class _Line:
    """The request that a curl line describes, built option by option. `ignored` names the options without effect."""

    def __init__(self) -> None:
        self.ignored: list[str] = []
        self._draft = Draft()
        self._urls: list[str] = []
        self._method: str | None = None
        self._implied = "GET"
        self._get = False
        self._query: list[str] = []
        self._file: str | None = None

    def take(self, name: str, value: str) -> None:
        """Add one option, by its long name without dashes; `value` is "" for a flag."""
        if name == "header":
            self._header(value)
        elif name.startswith("data") or name == "json":
            self._data(name, value)
        elif name in ("form", "form-string"):
            self._implied, self._draft.body = "POST", None
        elif name == "upload-file":
            self._implied, self._draft.body, self._file = "PUT", None, value
        elif name == "request":
            self._method = value
        elif name == "head":
            self._implied = "HEAD"
        elif name == "get":
            self._get = True
        elif name == "url":
            self._urls.append(value)
        elif name == "url-query":
            self._query.append(value[1:] if value.startswith("+") else _encoded_pair(value))
        else:
            self.ignored.append(f"--{name}")

    def request(self) -> Request:
        """Return the request of the whole line; raise BadInput unless it has exactly one URL."""
        if len(self._urls) != 1:
            cure = "put the URL in quotes, and name one" if self._urls else "name the URL of the request"
            raise BadInput(f"the curl line must name one URL, got {len(self._urls)}", cure)
        method, query = self._method or self._implied, self._query
        if self._get:
            method = self._method or ("HEAD" if self._implied == "HEAD" else "GET")
            query = [*query, (self._draft.body or b"").decode(errors="replace")]
            self._draft.body = b""
        return self._draft.build(method, self._address(), "&".join(filter(None, query)))

    def _address(self) -> str:
        """Return the URL; like curl, append the name of an uploaded file if the URL ends in a slash."""
        url = self._urls[0]
        if self._file in (None, "-", ".") or not url.endswith("/"):
            return url
        return url + encoded(str(self._file).replace("\\", "/").rpartition("/")[2])

    def _header(self, line: str) -> None:
        name, colon, value = line.partition(":")
        if line.startswith("@"):
            raise BadInput("headers from a file are not supported", "name them with -H 'Name: value'")
        if colon and not value.strip():  # removes a default header of curl
            self._draft.without_header(name)
        elif not colon and line.endswith(";"):  # curl's syntax for an empty header
            self._draft.header(f"{line[:-1]}:")
        else:
            self._draft.header(line)

    def _data(self, name: str, value: str) -> None:
        if self._implied == "GET":
            self._implied = "POST"
        if name == "data-urlencode":
            self._draft.data(_encoded_pair(value), files=False)
        else:
            keep, joint = name in ("data-binary", "json"), b"" if name == "json" else b"&"
            self._draft.data(value, files=name != "data-raw", keep_line_ends=keep, joint=joint)


def _encoded_pair(value: str) -> str:
    """Encode a value of `--data-urlencode` or `--url-query` as curl does, except that no file is read.

    "NAME=TEXT" encodes TEXT only. Everything else is encoded as a whole, without a first "=".
    """
    name, equals, content = value.partition("=")
    return f"{name}={encoded(content)}" if equals and name else encoded(content if equals else value)
