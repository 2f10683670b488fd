"""Addresses in the cloud: what is one, and how it goes over the wire."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.objects import Url, is_cloud

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("gs://bkt", Url("bkt")),
        ("gs://bkt/", Url("bkt")),
        ("gs://bkt/a/b", Url("bkt", "a/b")),
        ("gs://bkt//a", Url("bkt", "/a")),
        ("gs://bkt/a#5", Url("bkt", "a", 5)),
        ("gs://bkt/a#b", Url("bkt", "a#b")),
        ("gs://bkt/#5", Url("bkt", "#5")),
        ("gs://bkt/a#5#6", Url("bkt", "a#5", 6)),
        ("gs://bkt/new\nline#7", Url("bkt", "new\nline", 7)),
        ("gs://my.own-bucket_1/x", Url("my.own-bucket_1", "x")),
    ],
)
def test_an_address_is_read(text: str, url: Url) -> None:
    """Bucket, name and generation; a # is part of a name unless a number follows."""
    assert Url.parse(text) == url


@pytest.mark.parametrize("text", ["bkt/a", "s3://bkt/a", "gs:/bkt", "gs://", "gs:///a", "gs://Bkt/a", "gs://b kt/a"])
def test_what_is_none_is_refused(text: str) -> None:
    """The text says what is wrong."""
    with pytest.raises(ValueError, match="an address must"):
        Url.parse(text)


def test_a_name_that_is_too_long_is_refused() -> None:
    """Bytes count, not characters."""
    assert Url.parse("gs://bkt/" + "ä" * 512).name == "ä" * 512
    with pytest.raises(ValueError, match="more than 1024 bytes"):
        Url.parse("gs://bkt/" + "ä" * 513)


@given(NAMES, st.none() | st.integers(min_value=1, max_value=10**16))
def test_an_address_comes_back_as_it_was(name: str, generation: int | None) -> None:
    """The text of an address with a generation is read as the same address."""
    url = Url("bkt", name, generation)
    if generation is not None:
        assert Url.parse(str(url)) == url
    assert is_cloud(str(url))


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b", "a%2Fb"), ("..", ".."), ("%2F", "%252F"), ("a b+c#d?e", "a%20b%2Bc%23d%3Fe"), ("ä", "%C3%A4")],
)
def test_the_path_keeps_every_character(name: str, path: str) -> None:
    """Names are percent-encoded in whole, slashes too."""
    assert Url("bkt", name).path == f"/storage/v1/b/bkt/o/{path}"


@given(st.text(st.characters(codec="utf-8")) | st.text("aZ09_.~/-%"))
def test_a_path_is_quoted_as_python_quotes(name: str) -> None:
    """A name of plain characters takes a shorter way to the same path."""
    assert Url("bkt", name).path == f"/storage/v1/b/bkt/o/{quote(name, safe='')}"


def test_uploads_go_to_their_own_path() -> None:
    """That of the bucket."""
    assert Url("bkt", "name").upload_path == "/upload/storage/v1/b/bkt/o"
