"""The headers of a response tell which bytes its body has, and which bodies must not be used."""

from dataclasses import replace

import pytest

from forbear_transfer.downloads.description import BodyDescription, describe_body
from forbear_transfer.errors import WrongResponse
from forbear_transfer.objects import Object

VERSION = Object("bkt", "name", generation=7, size=100, crc32c="AAAAAA==")
GZIPPED = replace(VERSION, content_encoding="gzip")


@pytest.mark.parametrize(
    ("content_range", "end"),
    [
        ("bytes 10-49/100", 50),
        ("bytes 10-49/*", 50),
        ("bytes 10-48/100", 49),
        ("bytes 10-10/100", 11),
        ("bytes 10-50/100", None),
        ("bytes 10-99/100", None),
        ("bytes 9-49/100", None),
        ("bytes 11-49/100", None),
        ("bytes 10-49/101", None),
        ("bytes */100", None),
        ("", None),
    ],
)
def test_a_part_lies_within_what_was_requested(content_range: str, end: int | None) -> None:
    """A part begins at the first byte requested, ends at the last one or before it, and has the right total."""
    headers = {"content-range": content_range}
    if end is None:
        with pytest.raises(WrongResponse, match="bytes 10 to 49"):
            describe_body(VERSION, 10, 50, 206, headers)
    else:
        assert describe_body(VERSION, 10, 50, 206, headers) == BodyDescription(10, end)


@pytest.mark.parametrize(("total", "accepted"), [("100", True), ("*", False), ("101", False)])
def test_a_part_of_gzip_without_its_label_states_the_stored_size(total: str, accepted: bool) -> None:
    """Only the stored size as the total shows that the part is one of the stored bytes, not of decoded ones."""
    headers = {"content-range": f"bytes 10-49/{total}"}
    if accepted:
        assert describe_body(GZIPPED, 10, 50, 206, headers) == BodyDescription(10, 50)
    else:
        with pytest.raises(WrongResponse, match="bytes 10 to 49"):
            describe_body(GZIPPED, 10, 50, 206, headers)
