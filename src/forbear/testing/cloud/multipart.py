"""Reads the multipart/related body of an upload: one part of JSON, one part of media; knows no operation.

Lines end with CRLF, or all of them with LF, and the boundary may stand in single quotes: so write gsutil and gcsfs, and
the service takes it.
"""

from email.message import Message

from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.fields import json_object
from forbear.testing.cloud.wire import JsonObject


def read_multipart(content_type: str, body: bytes) -> tuple[JsonObject, str | None, slice]:
    """The metadata, the media's content type (None when not given) and where the media is; 400 for any other shape."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/related" or not isinstance(boundary, str) or not boundary:
        raise invalid("A multipart upload needs a Content-Type of multipart/related with a boundary.")
    delimiter = b"--" + boundary.strip("'").encode("latin-1", "replace")
    line_end = _line_end(body, delimiter)
    metadata, media = _parts(body, line_end, delimiter)
    _, content = _part(body, line_end, metadata)
    media_type, place = _part(body, line_end, media)
    return json_object(body[content]), media_type, place


def _line_end(body: bytes, delimiter: bytes) -> bytes:
    """That of the first delimiter stands for all of them."""
    first = body.find(b"\n", body.find(delimiter) + len(delimiter))
    return b"\n" if first > 0 and body[first - 1 : first] != b"\r" else b"\r\n"


def _parts(body: bytes, line_end: bytes, delimiter: bytes) -> tuple[slice, slice]:
    """What stands between the three delimiters; the body is searched and not cut up, for it may be large."""
    line = line_end + delimiter
    # The first delimiter may open the body, and then no line end comes before it; otherwise there is a preamble.
    places = [-len(line_end)] if body.startswith(delimiter) else []
    place = body.find(line)
    while place >= 0 and len(places) < 4:
        places.append(place)
        place = body.find(line, place + len(line))
    if len(places) != 3 or not body.startswith(b"--", places[2] + len(line)):
        raise invalid("A multipart upload has exactly two parts, the metadata and the media, and a closing boundary.")
    first, second, third = places
    return slice(first + len(line), second), slice(second + len(line), third)


def _part(body: bytes, line_end: bytes, place: slice) -> tuple[str | None, slice]:
    """The content type and the place of the content of one part."""
    empty_line = line_end * 2
    blank = body.find(empty_line, place.start, place.stop)
    head = body[place.start : max(blank, 0)]
    if not head.lstrip(b" \t").startswith(line_end) and not body.startswith(empty_line, place.start):
        raise invalid("A part of a multipart upload has headers, an empty line and the content.")
    content = slice(blank + len(empty_line), place.stop)
    for text in head.split(line_end):
        name, _, value = text.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip(), content
    return None, content
