"""Entries of an XML body: read without trust, and in doubt not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.http.preconditions import MAX_BODY
from forbear.tables.conditions import _Entries, _Refused, has_in_every_entry, is_positive


def _every(body: bytes | None) -> bool:
    return has_in_every_entry(body, "Object", "VersionId", is_positive)


ONE = "<Object><Key>a</Key><VersionId>7</VersionId></Object>"
BOMB = '<!DOCTYPE Delete [<!ENTITY v "7">]><Delete><Object><VersionId>&v;</VersionId></Object></Delete>'


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        (f"<Delete>{ONE}</Delete>", True),
        (f"<?xml version='1.0' encoding='UTF-8'?>\n<Delete><Quiet>true</Quiet>{ONE}{ONE}</Delete>\n", True),
        (f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{ONE}</Delete>', True),
        ('<s:Delete xmlns:s="x"><s:Object><s:VersionId> 7 </s:VersionId></s:Object></s:Delete>', True),
        ("<Delete><Object><VersionId>1<!-- -->7</VersionId></Object></Delete>", True),
        (f"<Delete>{ONE}<Object><Key>b</Key></Object></Delete>", False),
        ("<Delete><Object><Key>b</Key></Object></Delete>", False),
        ("<Delete><Object><VersionId/></Object></Delete>", False),
        ("<Delete><Object><VersionId>0</VersionId></Object></Delete>", False),
        ("<Delete><Object><VersionId>null</VersionId></Object></Delete>", False),
        ("<Delete><Object><VersionId>1</VersionId><VersionId>2</VersionId></Object></Delete>", False),
        ("<Delete><Object><Deeper><VersionId>1</VersionId></Deeper></Object></Delete>", False),
        ("<Delete><Object><VersionId><Deeper>1</Deeper></VersionId></Object></Delete>", False),
        ("<Delete><object><versionid>1</versionid></object></Delete>", False),
        ("<Delete><Other><Object><VersionId>1</VersionId></Object></Other></Delete>", False),
        ('<Delete><Object VersionId="1"/></Delete>', False),
        ("<Delete/>", False),
        (f"<Delete>{ONE}", False),
        (f"<Delete>{ONE}</Delete><Delete/>", False),
        (BOMB, False),
        ("<Delete><Object><VersionId>&lol;</VersionId></Object></Delete>", False),
        ('<?xml version="1.0" encoding="unheard-of"?><Delete/>', False),
        ("", False),
        ("{}", False),
    ],
)
def test_every_entry_must_have_it(body: str, holds: bool) -> None:
    """One entry without the element, or with two, or a document type, and the body does not count."""
    assert _every(body.encode()) is holds


def test_what_is_not_at_hand_or_too_large() -> None:
    """The limit is one MiB."""
    assert not _every(None)
    body = f"<Delete>{ONE}{' ' * MAX_BODY}</Delete>".encode()
    assert not _every(body)
    assert _every(body.replace(b" " * 200, b""))


def test_other_encodings_are_read_as_they_say() -> None:
    """UTF-16 hides nothing from the reader."""
    assert _every(f"<?xml version='1.0' encoding='UTF-16'?><Delete>{ONE}</Delete>".encode("utf-16"))
    assert not _every(f"<?xml version='1.0' encoding='UTF-16'?>{BOMB}".encode("utf-16"))


@pytest.mark.parametrize("depth", [40, 2_000, 140_000])
def test_a_body_nested_too_deep_is_left_at_once(depth: int) -> None:
    """A body 140 000 deep took two minutes: no more than the first elements are looked at."""
    deep = b"<a>" * depth + b"</a>" * depth
    assert not _every(b"<Delete>" + deep + ONE.encode() + b"</Delete>")
    assert not _every(b"<Delete><Object>" + deep + b"</Object></Delete>")
    seen = _Entries("Object", "VersionId")
    for _ in range(32):
        seen.start("a", {})
    with pytest.raises(_Refused):
        seen.start("a", {})


def test_a_text_in_many_pieces_is_bounded() -> None:
    """Each entity is a piece of its own, and all of them added up would cost the square of their number."""
    assert not _every(b"<Delete><Object><VersionId>" + b"&#49;" * 200_000 + b"</VersionId></Object></Delete>")
    assert _every(b"<Delete><Object><VersionId>" + b"&#49;" * 18 + b"</VersionId></Object></Delete>")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_body_raises(body: bytes) -> None:
    """Any bytes can be a body."""
    assert not _every(b"<Delete><Object>" + body)
