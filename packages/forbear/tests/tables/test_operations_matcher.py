"""The matcher: raw paths are compared segment by segment as they stand on the wire."""

import pytest

from forbear.tables.operations import Matcher


@pytest.fixture
def matcher() -> Matcher[str]:
    """A few templates that overlap."""
    made: Matcher[str] = Matcher()
    for method, template in [
        ("GET", "/b"),
        ("GET", "/b/{bucket}"),
        ("DELETE", "/b/{bucket}"),
        ("GET", "/b/{bucket}/o/{object}"),
        ("POST", "/b/{bucket}/o/bulk"),
        ("GET", "/b/{bucket}/o/{object}/acl"),
        ("POST", "/b/{s}/o/{so}/copy/b/{d}/o/{do}"),
    ]:
        made.add(method, template, f"{method} {template}")
    return made


@pytest.mark.parametrize(
    ("method", "path", "template"),
    [
        ("GET", "/b", "/b"),
        ("GET", "/b/x", "/b/{bucket}"),
        ("DELETE", "/b/x", "/b/{bucket}"),
        ("GET", "/b/x/o/y", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/a%2Fb", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/y%2Facl", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/y/acl", "/b/{bucket}/o/{object}/acl"),
        ("GET", "/b/o/o/o", "/b/{bucket}/o/{object}"),
        ("POST", "/b/x/o/bulk", "/b/{bucket}/o/bulk"),
        ("GET", "/b/x/o/bulk", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/bulk/acl", "/b/{bucket}/o/{object}/acl"),
        ("GET", "/b/x/o/...", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/.a", "/b/{bucket}/o/{object}"),
        ("GET", "/b/x/o/%2e%2fa", "/b/{bucket}/o/{object}"),
        ("POST", "/b/x/o/y/copy/b/z/o/w%2Fv", "/b/{s}/o/{so}/copy/b/{d}/o/{do}"),
    ],
)
def test_what_matches(matcher: Matcher[str], method: str, path: str, template: str) -> None:
    """A literal goes before a placeholder, and gives way to it where it leads nowhere."""
    assert matcher.find(method, path) == f"{method} {template}"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/"),
        ("GET", "b"),
        ("GET", "//b"),
        ("GET", "/b/"),
        ("GET", "/b//o/y"),
        ("GET", "/b/x/"),
        ("GET", "/b/x/o"),
        ("GET", "/b/x/o/"),
        ("GET", "/b/x/o/a/b"),
        ("GET", "/b/x/%6F/y"),
        ("GET", "/B/x"),
        ("PUT", "/b/x"),
        ("get", "/b/x"),
        ("POST", "/b/x/o/y/copy/b/z/o/w/v"),
        *(
            ("GET", f"/b/x/o/{dots}")
            for dots in (".", "..", "%2e", "%2E", ".%2e", "%2E.", "%2e%2E", "%2e%2e", "%2E%2E")
        ),
    ],
)
def test_what_does_not_match(matcher: Matcher[str], method: str, path: str) -> None:
    """Empty and dot segments, other spellings and other lengths are other paths."""
    assert matcher.find(method, path) is None


def test_the_same_route_twice_is_refused(matcher: Matcher[str]) -> None:
    """Two operations cannot be told apart by the name of a placeholder."""
    with pytest.raises(ValueError, match=r"must not share a method and a path, got GET /b/\{other\} twice"):
        matcher.add("GET", "/b/{other}", "?")


@pytest.fixture
def verbs() -> Matcher[str]:
    """Templates with verbs after a placeholder, after a literal, and a sibling without."""
    made: Matcher[str] = Matcher()
    for method, template in [
        ("GET", "/p/{p}/a/{a}"),
        ("DELETE", "/p/{p}/a/{a}"),
        ("POST", "/p/{p}/a/{a}:undo"),
        ("POST", "/p/{p}/a/{a}:redo"),
        ("GET", "/p/{p}/a/{a}:redo"),
        ("POST", "/p/{p}/a:clear"),
        ("GET", "/p/{p}/b/{b}"),
    ]:
        made.add(method, template, f"{method} {template}")
    return made


@pytest.mark.parametrize(
    ("method", "path", "template"),
    [
        ("POST", "/p/x/a/y:undo", "/p/{p}/a/{a}:undo"),
        ("POST", "/p/x/a/y:z:undo", "/p/{p}/a/{a}:undo"),
        ("POST", "/p/d.com:x/a/y:redo", "/p/{p}/a/{a}:redo"),
        ("GET", "/p/x/a/y:redo", "/p/{p}/a/{a}:redo"),
        ("GET", "/p/x/a/y%3Aredo", "/p/{p}/a/{a}"),
        ("GET", "/p/d.com:x/a/y", "/p/{p}/a/{a}"),
        ("POST", "/p/x/a:clear", "/p/{p}/a:clear"),
        ("GET", "/p/x/b/y:redo", "/p/{p}/b/{b}"),
        ("POST", "/p/x/a/y", None),
        ("POST", "/p/x/a/y:other", None),
        ("POST", "/p/x/a/y:UNDO", None),
        ("POST", "/p/x/a/y:", None),
        ("POST", "/p/x/a/:undo", None),
        ("POST", "/p/x/a/..:undo", None),
        ("POST", "/p/x/a/y:undo/", None),
        ("DELETE", "/p/x/a/y:undo", None),
        ("DELETE", "/p/x/a/y:other", None),
        ("POST", "/p/x/a/y%3Aundo", None),
        ("POST", "/p/x:undo", None),
    ],
)
def test_verbs(verbs: Matcher[str], method: str, path: str, template: str | None) -> None:
    """After the last colon of a last segment stands a verb, where its siblings have any; an encoded colon is none."""
    assert verbs.find(method, path) == (None if template is None else f"{method} {template}")
