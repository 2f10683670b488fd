"""Listing with a glob pattern."""

import httpx
import pytest

from forbear_cloud import Cloud

NAMES = ("a", "a.txt", "b.txt", "d/a.txt", "d/e/a.txt", "d/[x]", "d/^", "{}", "é")


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("*", ["a", "a.txt", "b.txt", "{}", "é"]),
        ("**", sorted(NAMES)),
        ("*.txt", ["a.txt", "b.txt"]),
        ("**.txt", ["a.txt", "b.txt", "d/a.txt", "d/e/a.txt"]),
        ("d/*", ["d/[x]", "d/^", "d/a.txt"]),
        ("d/**", ["d/[x]", "d/^", "d/a.txt", "d/e/a.txt"]),
        ("?", ["a", "é"]),
        ("d?a.txt", []),
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("[b-z].txt", ["b.txt"]),
        ("[^b].txt", ["a.txt"]),
        ("d[^x]a.txt", []),
        ("d/[\\^^]", ["d/^"]),
        ("{a,b}.txt", ["a.txt", "b.txt"]),
        ("{a,d/{a,e/a}.txt}", ["a", "d/a.txt", "d/e/a.txt"]),
        ("\\{\\}", ["{}"]),
        ("a,b", []),
        ("}", []),
        ("d/\\[x\\]", ["d/[x]"]),
        ("A", []),
    ],
)
def test_globs_match_as_documented(cloud: Cloud, http: httpx.Client, glob: str, matching: list[str]) -> None:
    """Stars, question marks, classes, alternatives and escapes match as documented."""
    for name in NAMES:
        cloud.store.put("bkt", name, b"")
    page = http.get("/storage/v1/b/bkt/o", params={"matchGlob": glob}).json()
    assert [item["name"] for item in page.get("items", [])] == matching


@pytest.mark.parametrize("glob", ["[", "[]", "[a", "{a", "\\", "[z-a]", "[^]"])
def test_bad_globs(http: httpx.Client, glob: str) -> None:
    """A pattern with a part that does not end is refused."""
    assert http.get("/storage/v1/b/bkt/o", params={"matchGlob": glob}).status_code == 400


def test_globs_with_a_delimiter(cloud: Cloud, http: httpx.Client) -> None:
    """A pattern can only be combined with a slash as the delimiter."""
    for name in NAMES:
        cloud.store.put("bkt", name, b"")
    page = http.get("/storage/v1/b/bkt/o", params={"matchGlob": "**a.txt", "delimiter": "/", "prefix": "d/"}).json()
    assert ([item["name"] for item in page["items"]], page["prefixes"]) == (["d/a.txt"], ["d/e/"])
    assert http.get("/storage/v1/b/bkt/o", params={"matchGlob": "*", "delimiter": "-"}).status_code == 400
