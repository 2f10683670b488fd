"""Parse a curl command line into the request that it would send. curl itself is not needed.

Options that cannot change the answer are ignored. An unknown option is an error, because it might change the answer.
"""

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from forbear.answers.draft import Draft, Reader, percent_encode
from forbear.answers.errors import NoAnswer
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

    >>> is_curl(["curl -X DELETE https://example.com"]), is_curl(["DELETE", "https://example.com"])
    (True, False)
    """
    first = words[0].split(maxsplit=1)[:1] if words else []
    return first != [] and first[0].replace("\\", "/").rpartition("/")[2] in ("curl", "curl.exe")


def parse(words: Sequence[str], read: Reader | None = None) -> tuple[Request, list[str]]:
    """Return the request that a curl line, in one or several words, would send, and the ignored options."""
    line = CurlLine(read)
    line.read(words)
    return line.request(), [f"--{name}" for name, _ in line.others]


def takes_next(word: str) -> bool:
    """Return whether a word is a curl option, or ends in one, whose value is the next word.

    >>> takes_next("--header"), takes_next("-sX"), takes_next("--head")
    (True, True, False)
    """
    if word.startswith("--"):
        return word[2:] in _WITH_VALUE
    if not word.startswith("-"):
        return False
    for index, letter in enumerate(word[1:], 2):
        if _LONG_NAMES.get(letter) in _WITH_VALUE:
            return index == len(word)
    return False


def _shell_words(words: Sequence[str]) -> tuple[list[str], str]:
    """Return the words after "curl", and the pipe, redirection or ";" at which a line in one word ends."""
    first, *others = words
    if others and not any(map(str.isspace, first)):
        return others, ""
    try:
        split = shlex.split(first.replace("\\\r\n", " ").replace("\\\n", " "))[1:]
    except ValueError as error:
        raise NoAnswer(f"the curl line cannot be read: {error}".lower(), "close every quote") from None
    end = next((index for index, word in enumerate(split) if word in _END_OF_COMMAND), len(split))
    return split[:end] + others, "".join(split[end : end + 1])


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options by their long names with their values ("" for flags); a plain word is a `--url`."""
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
    """Yield the options in a word such as `-sSXPATCH`, by their long names; a value may be the next word."""
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
        raise NoAnswer(f"the curl option {option} needs a value", "check that nothing was cut off")
    return value


def _unknown(option: str) -> NoAnswer:
    return NoAnswer(f"the curl option {option} is not known here", "leave it out if it does not change the request")


class CurlLine:
    """The request that a curl line describes, built option by option.

    `urls`, `form` (the parts of `-F`), `file` (of `-T`) and `removed` (the headers that the line takes away, in lower
    case) are as in the line. `others` has the options that do not change the request as the tables judge it. `end` is
    the pipe, redirection or ";" at which the curl command ended. `read` is as in `Draft`.

    >>> line = CurlLine()
    >>> line.read(["curl -X DELETE https://storage.googleapis.com/storage/v1/b/my-bucket"])
    >>> line.request().method, line.request().target
    ('DELETE', '/storage/v1/b/my-bucket')
    """

    def __init__(self, read: Reader | None = None) -> None:
        self.urls: list[str] = []
        self.others: list[tuple[str, str]] = []
        self.form: list[tuple[str, str]] = []
        self.file: str | None = None
        self.removed: set[str] = set()
        self.end = ""
        self.draft = Draft(read)
        self.method: str | None = None
        self.sends_data = self.sends_json = self.wants_head = False
        self._implied = "GET"
        self._get = False
        self._query: list[str] = []

    def read(self, words: Sequence[str]) -> None:
        """Add all options and URLs of a line that begins with curl; raise NoAnswer for an unknown option."""
        split, self.end = _shell_words(words)
        for name, value in _options(split):
            self.take(name, value)

    def take(self, name: str, value: str) -> None:
        """Add one option, by its long name without dashes; `value` is "" for a flag."""
        if name == "header":
            self._header(value)
        elif name.startswith("data") or name == "json":
            self._data(name, value)
        elif name in ("form", "form-string"):
            self._implied, self.draft.body = "POST", None
            self.form.append((name, value))
        elif name == "upload-file":
            self._implied, self.draft.body, self.file = "PUT", None, value
        elif name == "request":
            self.method = value
        elif name == "head":
            self._implied, self.wants_head = "HEAD", True
        elif name == "get":
            self._get = True
        elif name == "url":
            self.urls.append(value)
        elif name == "url-query":
            self._query.append(value[1:] if value.startswith("+") else self._encode_pair(value) or "")
        else:
            self.others.append((name, value))

    def request(self) -> Request:
        """Return the request of the whole line; raise NoAnswer unless it has exactly one URL."""
        if len(self.urls) != 1:
            cure = "put the URL in quotes, and name one" if self.urls else "name the URL of the request"
            raise NoAnswer(f"the curl line must name one URL, got {len(self.urls)}", cure)
        method, query = self.method or self._implied, self._query
        if self._get:
            method = self.method or ("HEAD" if self._implied == "HEAD" else "GET")
            query = [*query, (self.draft.body or b"").decode(errors="replace")]
            self.draft.body, self.sends_data = b"", False
        return self.draft.build(method, self._address(), "&".join(filter(None, query)))

    def _address(self) -> str:
        """Return the URL; like curl, append the name of an uploaded file if the URL ends in a slash."""
        url = self.urls[0]
        if self.file in (None, "-", ".") or not url.endswith("/"):
            return url
        return url + percent_encode(str(self.file).replace("\\", "/").rpartition("/")[2])

    def _header(self, line: str) -> None:
        name, colon, value = line.partition(":")
        if line.startswith("@"):
            raise NoAnswer("headers from a file are not supported", "name them with -H 'Name: value'")
        if colon and not value.strip():  # removes a default header of curl
            self.draft.remove_header(name)
            self.removed.add(name.strip().lower())
        elif not colon and line.endswith(";"):  # curl's syntax for an empty header
            self.draft.header(f"{line[:-1]}:")
        else:
            self.draft.header(line)

    def _data(self, name: str, value: str) -> None:
        if self._implied == "GET":
            self._implied = "POST"
        self.sends_data, self.sends_json = True, self.sends_json or name == "json"
        if name == "data-urlencode":
            pair = self._encode_pair(value)
            self.draft.add(None if pair is None else pair.encode(errors="replace"))
        else:
            keep, joint = name in ("data-binary", "json"), b"" if name == "json" else b"&"
            self.draft.data(value, files=name != "data-raw", keep_line_ends=keep, joint=joint)

    def _encode_pair(self, value: str) -> str | None:
        """Encode a value of `--data-urlencode` as curl does: TEXT, NAME=TEXT, NAME@FILE; None without the file."""
        name, equals, text = value.partition("=")
        if equals:
            escaped = percent_encode(text)
        elif "@" in value:
            name, _, file = value.partition("@")
            content = self.draft.content(file)
            if content is None:
                return None
            escaped = quote(content, safe="")
        else:
            name, escaped = "", percent_encode(value)
        return f"{name}={escaped}" if name else escaped
