"""XML documents, in and out: a small tree of names, texts and children; entities and document types are refused."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import Headers, Reply

_DEEPEST = 20
_MOST_ELEMENTS = 50_000
_LARGEST = 4 * 1024 * 1024
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LISTING = "http://doc.s3.amazonaws.com/2006-03-01"
"""The namespace of most documents."""

MULTIPART = "http://s3.amazonaws.com/doc/2006-03-01/"
"""The namespace of those about multipart uploads."""


@dataclass(slots=True)
class Element:
    """An element without its attributes and namespaces."""

    name: str
    text: str = ""
    children: list["Element"] = field(default_factory=list["Element"])

    def all(self, name: str) -> Iterator["Element"]:
        """The children of a name."""
        return (child for child in self.children if child.name == name)

    def value(self, name: str) -> str | None:
        """The text of the first child of a name, None when there is none."""
        return next((child.text.strip() for child in self.all(name)), None)


def read(body: bytes, root: str) -> Element:
    """Parse a body; 400 unless its root has this name, 413 for one that is too large."""
    if len(body) > _LARGEST:
        raise ApiError(413, f"The XML of a request must have at most {_LARGEST} bytes, got {len(body)}.")
    stack = [Element("")]
    texts: list[list[str]] = [[]]
    left = _MOST_ELEMENTS

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal left
        left -= 1
        if len(stack) > _DEEPEST or left < 0:
            raise _malformed()
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
        raise _malformed()

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError):
        raise _malformed() from None
    found = stack[0].children[0]
    if found.name != root:
        raise _malformed()
    return found


def written(element: Element) -> str:
    """An element as XML."""
    content = escape(_UNWRITABLE.sub("\ufffd", element.text)) + "".join(map(written, element.children))
    return f"<{element.name}>{content}</{element.name}>"


def leaf(name: str, value: object) -> Element:
    """An element with a text."""
    return Element(name, str(value))


def xml_reply(root: Element, status: int = 200, headers: Headers = (), *, namespace: str | None = LISTING) -> Reply:
    """A reply whose body is XML."""
    text = written(root)
    if namespace is not None:
        text = text.replace(f"<{root.name}>", f"<{root.name} xmlns='{namespace}'>", 1)
    body = f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()
    return Reply(status, (("Content-Type", "application/xml; charset=UTF-8"), *headers), body)


def _malformed() -> ApiError:
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


def xml_error(error: ApiError) -> Reply:
    """An error as a document; words of other forms give way to the API's own, and 304 has no body."""
    if error.status == 304:
        return Reply(304, error.headers)
    known = error.reason is not None and error.reason[:1].isupper() and not error.reason.isupper()
    code = error.reason if known else _CODES.get(error.status, "InternalError")
    root = Element("Error", "", [leaf("Code", code), leaf("Message", error.message)])
    return xml_reply(root, error.status, error.headers, namespace=None)


def no_such_bucket() -> ApiError:
    """404 for a bucket."""
    return ApiError(404, "The specified bucket does not exist.", "NoSuchBucket")


def no_such_upload() -> ApiError:
    """404 for a multipart upload, which may be finished or aborted."""
    return ApiError(404, "The requested upload was not found.", "NoSuchUpload")
