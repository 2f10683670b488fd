"""Reading curl lines: the request that curl would send, or an error that names what is in the way."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forbear.answers import curl
from forbear.answers.errors import NoAnswer
from forbear.http.request import Request

URL = "https://api.example.com/things/1?a=b"


def read(*words: str) -> Request:
    """The request of a line that begins with curl."""
    return curl.parse(("curl", *words))[0]


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ((URL,), "GET"),
        (("-I", URL), "HEAD"),
        (("--head", URL), "HEAD"),
        (("-d", "x", URL), "POST"),
        (("--json", "{}", URL), "POST"),
        (("-F", "a=@file", URL), "POST"),
        (("-T", "file", URL), "PUT"),
        (("-G", "-d", "x", URL), "GET"),
        (("-G", "-I", "-d", "x", URL), "HEAD"),
        (("-X", "PATCH", "-d", "x", URL), "PATCH"),
        (("-XPATCH", URL), "PATCH"),
        (("-sSXDELETE", URL), "DELETE"),
        (("--request", "patch", URL), "patch"),
        (("-X", "PURGE", "-T", "file", URL), "PURGE"),
    ],
)
def test_the_method_is_named_or_implied(words: tuple[str, ...], method: str) -> None:
    """The method is the one named, as it is spelt, or the one that the other options imply."""
    assert read(*words).method == method


def test_the_whole_request() -> None:
    """Host, target, headers and body are those that curl would send."""
    request = read("-H", 'If-Match: "1"', "-H", "X-Two:b", "--header", "X-Two: c", "--data", '{"a": 1}', "--url", URL)
    assert request == Request(
        "POST", "api.example.com", "/things/1?a=b", {"if-match": '"1"', "x-two": "b, c"}, b'{"a": 1}'
    )


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("-d", "a=1", "-d", "b=2"), b"a=1&b=2"),
        (("--data-raw", "@not-a-file"), b"@not-a-file"),
        (("--data-urlencode", "a=b c&d"), b"a=b%20c%26d"),
        (("--data-urlencode", "b c"), b"b%20c"),
        (("--data-urlencode", "=b=c"), b"b%3Dc"),
        (("--data-urlencode", "+b"), b"%2Bb"),
        (("--data-urlencode", "a@-"), None),
        (("--data-urlencode", "a=b@-"), b"a=b%40-"),
        (("--json", '{"a":', "--json", "1}"), b'{"a":1}'),
        (("-d", ""), b""),
        (("-d", "@-"), None),
        (("-d", "a", "-d", "@-", "-d", "b"), None),
        (("-T", "file"), None),
        (("-F", "a=b"), None),
        (("-G", "-d", "a=1"), b""),
        ((), b""),
    ],
)
def test_the_body_is_put_together_as_by_curl(words: tuple[str, ...], body: bytes | None) -> None:
    """The body is put together as curl does; what is not at hand makes it unknown."""
    assert read(*words, URL).body == body


@pytest.mark.parametrize(
    ("words", "body", "target"),
    [
        (("-d", "@FILE"), b"onetwo", "/a"),
        (("--data-binary", "@FILE"), b"one\r\ntwo\n", "/a"),
        (("--json", "@FILE"), b"one\r\ntwo\n", "/a"),
        (("--data-urlencode", "a@FILE"), b"a=one%0D%0Atwo%0A", "/a"),
        (("--data-urlencode", "@FILE"), b"one%0D%0Atwo%0A", "/a"),
        (("--url-query", "n@FILE"), b"", "/a?n=one%0D%0Atwo%0A"),
    ],
)
def test_bodies_from_files(words: tuple[str, ...], body: bytes, target: str) -> None:
    """`@FILE` is what the caller's function reads, without its line ends unless the option keeps them."""
    files = {"FILE": b"one\r\ntwo\n"}
    request, _ = curl.parse(("curl", *words, "https://host/a"), files.__getitem__)
    assert (request.body, request.target) == (body, target)


@pytest.mark.parametrize("option", ["-d", "--data-binary", "--json", "--data-urlencode"])
def test_no_file_is_read_for_a_caller_who_reads_none(option: str, tmp_path: Path) -> None:
    """The body of such a line is not known, whether the file is there or not."""
    there = tmp_path / "body"
    there.write_bytes(b"content")
    for file in (there, tmp_path / "missing", "-"):
        assert read(option, f"@{file}", URL).body is None


def test_stdin_is_read_if_the_caller_offers_it() -> None:
    """Without that the body is not known; the words after a line in one word belong to it."""
    line = curl.CurlLine(lambda name: b"from\nstdin" if name == "-" else None)
    line.read((f"curl {URL} | jq .", "-d", "@-", "--data-binary", "@-"))
    assert line.request().body == b"fromstdin&from\nstdin"
    assert line.end == "|"


@pytest.mark.parametrize(
    ("word", "takes"),
    [("-d", True), ("-sSd", True), ("-dx", False), ("-s", False), ("--data", True), ("--silent", False), ("-", False),
     ("data", False), ("--data=x", False), ("-Zd", True), ("", False), ("--", False)],
)  # fmt: skip
def test_which_words_take_the_next(word: str, takes: bool) -> None:
    """An option whose value is a word of its own claims the next word, even if that looks like an option."""
    assert curl.takes_next(word) is takes


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("https://host",), "/"),
        (("https://host?a",), "/?a"),
        (("https://host/a#part",), "/a"),
        (("https://host/o/a%2Fb",), "/o/a%2Fb"),
        (("https://host/a b/ü",), "/a%20b/%C3%BC"),
        (("-G", "-d", "b=2", "--data-urlencode", "c=3 4", "https://host/a?x=1"), "/a?x=1&b=2&c=3%204"),
        (("--url-query", "b=2", "https://host/a"), "/a?b=2"),
        (("--url-query", "+b=%20", "https://host/a"), "/a?b=%20"),
        (("-T", "some/file name", "https://host/dir/"), "/dir/file%20name"),
        (("-T", "-", "https://host/dir/"), "/dir/"),
        (("-T", "file", "https://host/name"), "/name"),
    ],
)
def test_path_and_query_stay_as_typed(words: tuple[str, ...], target: str) -> None:
    """Path and query stay as they are typed, with what options add to them."""
    assert read(*words).target == target


def test_headers_that_curl_takes_specially() -> None:
    """An empty header takes one away, one that ends in a semicolon is sent empty."""
    assert read("-H", "A: b", "-H", "A:", "-H", "C;", URL).headers == {"c": ""}


def test_what_does_not_matter_is_named() -> None:
    """Options that change nothing of what matters are left out of account, and their values are not repeated."""
    words = ("curl", "-sS", "-L", "-u", "me:SECRET", "--no-compressed", "-oout", "--max-time", "3", URL)
    _, ignored = curl.parse(words)
    assert ignored == ["--silent", "--show-error", "--location", "--user", "--no-compressed", "--output", "--max-time"]


@pytest.mark.parametrize(
    "line",
    [
        f"curl -X PATCH '{URL}' -H 'A: b' -d '{{\"x\": 1}}'",
        f"curl -X PATCH \\\n  '{URL}' \\\r\n  -H 'A: b' \\\n -d '{{\"x\": 1}}' | jq .",
        f'/usr/bin/curl -XPATCH "{URL}" -H "A: b" -d \'{{"x": 1}}\' > out && echo done',
    ],
)
def test_a_line_in_one_piece(line: str) -> None:
    """A pasted line is split as a shell would split it, up to where curl's own part of it ends."""
    request, _ = curl.parse((line,))
    assert request == Request("PATCH", "api.example.com", "/things/1?a=b", {"a": "b"}, b'{"x": 1}')


@pytest.mark.parametrize(
    ("words", "text", "hint"),
    [
        ((f"curl '{URL}",), "the curl line cannot be read: no closing quotation", "close every quote"),
        (("curl",), "the curl line must name one URL, got 0", "name the URL of the request"),
        (("curl", URL, URL), "the curl line must name one URL, got 2", "put the URL in quotes, and name one"),
        (("curl", "-X"), "the curl option -X needs a value", "check that nothing was cut off"),
        (("curl", URL, "--json"), "the curl option --json needs a value", "check that nothing was cut off"),
        (("curl", "--bogus=SECRET", URL), "the curl option --bogus is not known here", "leave it out if"),
        (("curl", "-sZ", URL), "the curl option -Z is not known here", "leave it out if"),
        (("curl", "--next", URL), "the curl option --next is not known here", "leave it out if"),
        (("curl", "--no-request", URL), "the curl option --no-request is not known here", "leave it out if"),
        (("curl", "-H", "Bearer SECRET", URL), "header 1 is not a header", "write it as 'Name: value', in quotes"),
        (("curl", "-H", "A: b", "-H", "My Token: SECRET", URL), "header 2 is not a header", "write it as"),
        (("curl", "-H", "A: b\nC: SECRET", URL), "header 1 is not a header", "write it as"),
        (("curl", "-H", "@file", URL), "headers from a file are not supported", "name them with -H"),
        (("curl", "-X", "A B", URL), "the method must be an HTTP method such as GET or PATCH", "put it first"),
        (("curl", "api.example.com/x?key=SECRET"), "the URL has no scheme: api.example.com/x", "https://api.example.com/x"),
        (("curl", "gs://bkt/a b/c"), "a gs:// URL names an object", "/storage/v1/b/bkt/o/a%20b%2Fc"),
        (("curl", "gs://bkt"), "a gs:// URL names an object", "https://storage.googleapis.com/storage/v1/b/bkt"),
        (("curl", "ftp://host/a"), "the URL must begin with https:// or http://, got ftp://", "name the URL"),
        (("curl", "https://"), "this is not a URL: https://", "write it as https://host/path"),
        (("curl", "https://[::1/a"), "this is not a URL: https://[::1/a", "write it as https://host/path"),
        (("curl", "https://host:port/a"), "this is not a URL: https://host:port/a", "write it as https://host/path"),
        (("curl", "https://me:SECRET@/a"), "this is not a URL: /a", "write it as https://host/path"),
        (("curl", "https://ho st/a"), "this is not a URL: https://ho st/a", "write it as https://host/path"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(words: tuple[str, ...], text: str, hint: str) -> None:
    """The error names what is wrong, the hint the cure, and neither repeats what may be secret."""
    with pytest.raises(NoAnswer) as error:
        curl.parse(words)
    assert text in error.value.message
    assert hint in error.value.cure
    assert "SECRET" not in str(error.value)


def test_secrets_in_a_url_stay_out_of_the_request_line() -> None:
    """User and password in a URL are no part of the host."""
    assert read("https://me:SECRET@HOST:8443/a").host == "host:8443"


@pytest.mark.parametrize(
    ("words", "answer"),
    [((), False), (("",), False), (("GET",), False), (("curl",), True), (("curl x",), True), (("curly",), False),
     (("/usr/bin/curl",), True), (("C:\\curl.exe",), True), ((" curl -I x",), True)],
)  # fmt: skip
def test_what_is_a_curl_line(words: tuple[str, ...], answer: bool) -> None:
    """The first word decides."""
    assert curl.is_curl(words) == answer


@given(st.lists(st.text(max_size=30), max_size=5))
@example(["'"])
@example(["-X", "A\x00"])
@example(["-G", "-d", "\ud800", "https://x"])
@example(["https://x\udcff/\udcff?\udcff"])
@example(["gs://\udcff/\udcff"])
@example(["--data-urlencode", "\udcff=\udcff", "https://x"])
@example(["-T", "\udcff", "https://x/"])
@example(["-d", "@\x00", "https://x"])
@example(["https://x/" + json.dumps({"a": 1})])
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    """No words lead to another error."""
    for line in (("curl", *words), (f"curl {' '.join(words)}",)):
        try:
            request, _ = curl.parse(line)
        except NoAnswer:
            continue
        assert request.target.isascii()
