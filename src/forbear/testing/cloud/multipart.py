"""Reads the multipart/related body of an upload: one part of JSON, one part of media; knows no operation."""

from email.message import Message

from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.fields import json_object
from forbear.testing.cloud.wire import JsonObject


def read_multipart(content_type: str, body: bytes) -> tuple[JsonObject, str | None, bytes]:
    """The metadata, the media's content type (None when not given) and the media; 400 for any other shape."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/related" or not isinstance(boundary, str) or not boundary:
        raise invalid("A multipart upload needs a Content-Type of multipart/related with a boundary.")
    delimiter = b"--" + boundary.encode("latin-1", "replace")
    parts = body.split(b"\r\n" + delimiter)
    # The first delimiter opens the body, so no line end comes before it; what stands before it is a preamble.
    first = parts[0].removeprefix(delimiter) if parts[0].startswith(delimiter) else None
    pieces = ([first] if first is not None else []) + parts[1:]
    if len(pieces) != 3 or not pieces[2].startswith(b"--"):
        raise invalid("A multipart upload has exactly two parts, the metadata and the media, and a closing boundary.")
    _, metadata = _part(pieces[0])
    media_type, media = _part(pieces[1])
    return json_object(metadata), media_type, media


def _part(piece: bytes) -> tuple[str | None, bytes]:
    """The content type and the content of one part."""
    head, blank, content = piece.partition(b"\r\n\r\n")
    if not blank or not head.lstrip(b" \t").startswith(b"\r\n"):
        raise invalid("A part of a multipart upload has headers, an empty line and the content, with CRLF line ends.")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip(), content
    return None, content
