"""Patterns of `safe=`: which requests they cover, and which they never do."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.http.patterns import Pattern, covers, patterns, suggest_patterns
from forbear.http.request import Request

SEARCH = "POST https://api.example.com/v1/search*"
SECRET = "/<fill in>"


def post(
    target: str, host: str = "api.example.com", method: str = "POST", scheme: str = "https", **headers: str
) -> Request:
    """Return a request with the headers `headers`, by their names in Python."""
    return Request(
        method, host, target, {name.rstrip("_").replace("_", "-"): text for name, text in headers.items()}, b"", scheme
    )


@pytest.mark.parametrize(
    ("pattern", "request_"),
    [
        (SEARCH, post("/v1/search")),
        (SEARCH, post("/v1/search:all")),
        (SEARCH, post("/v1/search", host="API.EXAMPLE.COM:443")),
        (SEARCH, post("/v1/search", host_="api.example.com:443")),
        ("POST https://api.example.com/", post("/")),
        ("POST http://[::1]:8080/a", post("/a", host="[::1]:8080", scheme="http")),
        ("POST https://api.example.com/v1/*/items:get*", post("/v1/p-1/items:getAll")),
        ("POST https://api.example.com/a*b*c", post("/abbc")),
        ("POST https://api.example.com/a?x=1", post("/a?x=1")),
        ("POST https://api.example.com/a?*", post("/a?x=1&y=/2")),
        ("POST https://api.example.com/a?x=*&y=2", post("/a?x=1&y=2")),
        ("POST https://api.example.com/%C3%A4", post("/%C3%A4")),
        (SEARCH, post("/v1/search", x_http_method_override="POST")),
        ("POST http://http/a", post("/a", host="http", scheme="http")),
        ("POST https://s/a?x", post("/a?x", host="s")),
    ],
)
def test_a_pattern_covers_only_what_agrees_with_it(pattern: str, request_: Request) -> None:
    """The method, the origin, each segment of the path and the query agree with the pattern."""
    assert covers(patterns(pattern), request_)


@pytest.mark.parametrize(
    "request_",
    [
        post("/v1/search", method="PATCH"),
        post("/v1/search", method="post"),
        post("/v1/search", scheme="http"),
        post("/v1/search", host="api.example.com:8443"),
        post("/v1/search", host="api.example.com.evil.example"),
        post("/v1/search", host="evil.example"),
        post("/v1/search", host="api.example.com@evil.example"),
        post("/v1/search", host_="evil.example"),
        post("/v1/search", host_="api.example.com:8443"),
        post("/v1/search", host_="api.example.com:https"),
        post("/v1/search", host_="api.example.com:\u0664\u0664\u0663"),
        post("/v1/search", host_="api.example.com:" + "4" * 5000),
        post("/v1/search/delete"),
        post("/v1/search?delete=1"),
        post("/v1/search?"),
        post("/V1/search"),
        post("/v2/search"),
        post("//v1/search"),
        post("v1/search"),
        post("https://api.example.com/v1/search"),
        post("/v1/search/"),
        post("/v1/searc"),
        post("/v1/search%2Fdelete"),
        post("/v1/search%2fdelete"),
        post("/v1/search%252Fdelete"),
        post("/v1/search%25252525252Fdelete"),
        post("/v1/search\\delete"),
        post("/v1/search%5Cdelete"),
        post("/v1/search%00"),
        post("/v1/search%C0%AFdelete"),
        post("/v1/search", x_http_method_override="DELETE"),
        post("/v1/search", x_http_method="delete"),
        post("/v1/search", x_method_override="PUT"),
    ],
)
def test_not_covered(request_: Request) -> None:
    """A request that differs in anything, or that a server might read in another way, is not covered."""
    assert not covers(patterns(SEARCH), request_)


@pytest.mark.parametrize("segment", ["..", ".", "%2e%2e", "%2E.", "..;x", "%252e%252e", ""])
def test_a_star_covers_no_dot_segment_and_no_empty_one(segment: str) -> None:
    """`*` alone stands for one segment with a name."""
    pattern = patterns("POST https://api.example.com/v1/*/search")
    assert covers(pattern, post("/v1/p/search"))
    assert not covers(pattern, post(f"/v1/{segment}/search"))


def test_an_override_needs_a_pattern_of_its_own() -> None:
    """With an override header, the method on the wire and the other one must both be covered."""
    both = patterns(["POST https://a.example/x", "DELETE https://a.example/x"])
    request = post("/x", host="a.example", x_http_method_override="DELETE")
    assert covers(both, request)
    assert not any(covers([pattern], request) for pattern in both)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://a.example/x", "a method in upper case, a space and a URL"),
        ("post https://a.example/x", "a method in upper case"),
        ("* https://a.example/x", "a method in upper case"),
        ("", "a method in upper case"),
        ("POTS https://a.example/x", "did you mean POST?"),
        ("POST  https://a.example/x", "as they go over the wire"),
        ("POST https://a.example/ä", "as they go over the wire"),
        ("POST https://bücher.example/x", "xn--"),
        ("POST /x", "begins with http:// or https://"),
        ("POST ftp://a.example/x", "begins with http:// or https://"),
        ("POST https:///x", "begins with http:// or https://"),
        ("POST https://a.example:port/x", "with a valid URL"),
        ("POST https://[::1/x", "with a valid URL"),
        ("POST https://*.example/x", "without `*`, user and password"),
        ("POST https://u:p@a.example/x", "without `*`, user and password"),
        ("POST https://a.example/x#y", "without a fragment"),
        ("POST https://a.example", "with a path"),
        ("POST https://a.example/**", "one pattern for each depth"),
        ("POST https://a.example/a/../x", "without dot segments"),
        ("POST https://a.example/a%2Fx", "encoded slashes"),
    ],
)
def test_wrong_patterns(text: str, words: str) -> None:
    """The error names the parameter, the rule, the value and what to write."""
    with pytest.raises(ValueError, match="`safe` must hold patterns") as caught:
        patterns(text)
    assert words in str(caught.value)
    assert repr(text.replace("POST https://u:p@", "[redacted]@")) in str(caught.value)


@pytest.mark.parametrize("safe", [7, None, [7], [None]])
def test_wrong_types(safe: object) -> None:
    """Anything but patterns is refused."""
    with pytest.raises(TypeError, match="`safe` must"):
        patterns(safe)  # type: ignore[arg-type]


def test_patterns_are_values() -> None:
    """They compare by their text, and pickle."""
    pattern = Pattern(SEARCH)
    assert pattern == Pattern(SEARCH) != Pattern("POST https://api.example.com/v1/search")
    assert pickle.loads(pickle.dumps(pattern)).segments == pattern.segments
    assert pattern.text in repr(pattern)


_SEGMENTS = st.lists(st.text("ab*", min_size=1).filter(lambda text: "**" not in text), min_size=1, max_size=3)


@given(_SEGMENTS, st.data())
def test_a_star_stands_for_any_text(segments: list[str], data: st.DataObject) -> None:
    """Whatever replaces the stars, the path is covered; one more or one less segment is not."""
    pattern = patterns("POST https://a.example/" + "/".join(segments))
    filled = "/".join(
        "".join(data.draw(st.text("abc", min_size=segment == "*")) if mark == "*" else mark for mark in segment)
        for segment in segments
    )
    assert covers(pattern, post(f"/{filled}", host="a.example"))
    assert not covers(pattern, post(f"/{filled}/c", host="a.example"))
    assert not covers(pattern, post(f"/{filled}".rpartition("/")[0], host="a.example"))


def test_matching_is_linear() -> None:
    """A pattern of many stars and a long path take no longer than the path is long."""
    pattern = patterns("POST https://a.example/" + "*a" * 200)
    assert not covers(pattern, post("/" + "a" * 100_000 + "b", host="a.example"))
    assert not covers(pattern, post("/" * 100_000, host="a.example"))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (post("/v1/search"), ("POST https://api.example.com/v1/search",)),
        (post("/"), ("POST https://api.example.com/",)),
        (post("/v1/users/8c9f/rotate?token=x"), ("POST https://api.example.com/v1/users/8c9f/rotate?<fill in>",)),
        (post("/bot123:AAF-secret/send"), ("POST https://api.example.com/bot123:AAF-secret/send",)),
        (post("/v3/projects/p-1:setIamPolicy"), ("POST https://api.example.com/v3/projects/p-1:setIamPolicy",)),
        (post("/" + "k" * 25 + ":run"), ("POST https://api.example.com/<fill in>:run",)),
        (post("/oauth2/token"), ("POST https://api.example.com/oauth2/token",)),
        (post("/a?page=2"), ("POST https://api.example.com/a?<fill in>",)),
        (post("/a?"), ("POST https://api.example.com/a?",)),
        (post("/a*b"), ()),
        (post("/a?q=*"), ()),
        (
            post("/services/Team/Bot/abcdef", host="hooks.slack.com"),
            (f"POST https://hooks.slack.com{4 * SECRET}",),
        ),
        (
            post("/webhookb2/ab/IncomingWebhook/cd/x"),
            (f"POST https://api.example.com/webhookb2{4 * SECRET}",),
        ),
        (post("/trigger/e/with/key/abcdef"), ("POST https://api.example.com/trigger/e/with/key/<fill in>",)),
        (
            post("/api/webhooks/abc/def?wait=true"),
            (f"POST https://api.example.com/api/webhooks{2 * SECRET}?<fill in>",),
        ),
        (post("/bot123456:abcdef/send"), ("POST https://api.example.com/<fill in>/<fill in>",)),
        (post("/a", host="[::1]:8080", scheme="http"), ("POST http://[::1]:8080/a",)),
        (post("/a", host="api.example.com:80", scheme="http"), ("POST http://api.example.com/a",)),
        (
            post("/a", x_http_method_override="DELETE"),
            ("POST https://api.example.com/a", "DELETE https://api.example.com/a"),
        ),
        (post("/a/../b"), ()),
        (post("/a%2fb"), ()),
        (post("/a", host_="evil.example"), ()),
        (post("*", method="OPTIONS"), ()),
    ],
)
def test_suggested_patterns_are_literal_but_for_secrets(request_: Request, expected: tuple[str, ...]) -> None:
    """They are literal but for secrets and queries, and what no pattern can cover alone gets none."""
    assert suggest_patterns(request_) == expected


@given(
    st.text("ab1:*%2fF./\\;?=-\u00e4 ", max_size=30), st.sampled_from(["h.example", "[::1]:1", "h:99999", "", "h h"])
)
def test_a_suggestion_covers_its_request_alone(target: str, host: str) -> None:
    """Whatever is requested, the patterns that are suggested for it cover it and nothing else, or there are none."""
    request = post(f"/{target}", host=host)
    found = suggest_patterns(request)
    assert "*" not in "".join(found)
    assert not found or "<fill in>" in found[0] or covers(patterns(found), request)


def test_a_suggestion_must_be_filled_in() -> None:
    """A pattern with the mark of a secret is refused, and the error says what to write."""
    (pattern,) = suggest_patterns(post("/services/Team/Bot/abcdef", host="hooks.slack.com"))
    with pytest.raises(ValueError, match="without <fill in>: write what your URL has there, or `\\*` for anything"):
        patterns(pattern)


def test_every_piece_between_stars_is_needed() -> None:
    """A segment without the middle piece is not covered."""
    assert not covers(patterns("POST https://api.example.com/a*b*c"), post("/axxc"))
