"""Parse and write XML documents as trees of elements, and write errors in the form of the XML API.

The parser refuses document types, and limits size, depth and the number of elements.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from forbear_cloud.http.messages import ApiError, Headers, HttpResponse

_MAX_DEPTH = 20
_MAX_ELEMENTS = 50_000
_MAX_SIZE = 4 * 1024 * 1024
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LISTING = "http://doc.s3.amazonaws.com/2006-03-01"
"""The XML namespace of documents about buckets, listings and copies."""

MULTIPART = "http://s3.amazonaws.com/doc/2006-03-01/"
"""The XML namespace of documents about multipart uploads."""


@dataclass(slots=True)
class Element:
    """An XML element without its attributes and namespaces; `text` is all text directly in it."""

    name: str
    text: str = ""
    children: list["Element"] = field(default_factory=list["Element"])

    def all(self, name: str) -> Iterator["Element"]:
        """Return an iterator over the direct children with this name."""
        return (child for child in self.children if child.name == name)

    def value(self, name: str) -> str | None:
        """Return the text of the first child with this name, without spaces around it; None without such a child."""
        return next((child.text.strip() for child in self.all(name)), None)


def read(body: bytes, root: str) -> Element:
    """Parse a body of XML, and return its root element, which must have the name `root`.

    Raise 413 if it is larger than 4 MiB. Raise 400 for wrong XML, another root or a document type, for elements more
    than 20 deep, and for more than 50,000 elements.
    """
    if len(body) > _MAX_SIZE:
        raise ApiError(413, f"The XML of a request must have at most {_MAX_SIZE} bytes, got {len(body)}.")
    stack = [Element("")]
    texts: list[list[str]] = [[]]
    left = _MAX_ELEMENTS

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal left
        left -= 1
        if len(stack) > _MAX_DEPTH or left < 0:
            raise _make_malformed_error()
        element = Element(name.rpartition(":")[2])
        stack[-1].children.append(element)
        stack.append(element)
        texts.append([])

    def end(_: str) -> None:
        # Joined once: text that grows piece by piece would be copied with each.
        stack.pop().text = "".join(texts.pop())

    def text(data: str) -> None:
        texts[-1].append(data)

    def refuse(*_: object) -> None:
        raise _make_malformed_error()

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError):
        raise _make_malformed_error() from None
    element = stack[0].children[0]
    if element.name != root:
        raise _make_malformed_error()
    return element


def _write(element: Element) -> str:
    """Return an element as XML text; characters that XML does not allow become U+FFFD."""
    content = escape(_UNWRITABLE.sub("\ufffd", element.text)) + "".join(map(_write, element.children))
    return f"<{element.name}>{content}</{element.name}>"


def leaf(name: str, value: object) -> Element:
    """Return an element with `value` as its text and no children."""
    return Element(name, str(value))


def node(name: str, *children: Element) -> Element:
    """Return an element that contains other elements and no text."""
    return Element(name, "", list(children))


def xml_response(
    root: Element, status: int = 200, headers: Headers = (), *, namespace: str | None = LISTING
) -> HttpResponse:
    """Return a response whose body is an XML document with this root.

    `headers` are added to the Content-Type. The root gets the namespace unless that is None.
    """
    text = _write(root)
    if namespace is not None:
        text = text.replace(f"<{root.name}>", f"<{root.name} xmlns='{namespace}'>", 1)
    body = f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()
    return HttpResponse(status, (("Content-Type", "application/xml; charset=UTF-8"), *headers), body)


def _make_malformed_error() -> ApiError:
    return ApiError(400, "The XML you provided was not well-formed or did not validate.", "MalformedXML")


_CODES = {
    400: "InvalidArgument",
    401: "AuthenticationRequired",
    403: "AccessDenied",
    404: "NoSuchKey",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "OperationAborted",
    410: "NoSuchUpload",
    411: "MissingContentLength",
    412: "PreconditionFailed",
    413: "EntityTooLarge",
    416: "InvalidRange",
    429: "SlowDown",
    500: "InternalError",
    499: "ClientClosedRequest",
    501: "NotImplemented",
    503: "ServiceUnavailable",
}


def xml_error(error: ApiError) -> HttpResponse:
    """Return an error as a response with an XML document; a 304 has no body.

    The reason becomes its code only if it is in the form of the XML API, such as NoSuchKey. Otherwise the code is that
    of the status.
    """
    if error.status == 304:
        return HttpResponse(304, error.headers)
    known = error.reason is not None and error.reason[:1].isupper() and not error.reason.isupper()
    code = error.reason if known else _CODES.get(error.status, "InternalError")
    root = node("Error", leaf("Code", code), leaf("Message", error.message))
    return xml_response(root, error.status, error.headers, namespace=None)


def no_such_bucket() -> ApiError:
    """Return the 404 error for a bucket that does not exist."""
    return ApiError(404, "The specified bucket does not exist.", "NoSuchBucket")


def no_such_upload() -> ApiError:
    """Return the 404 error for a multipart upload that does not exist, or is complete or aborted."""
    return ApiError(404, "The requested upload was not found.", "NoSuchUpload")
