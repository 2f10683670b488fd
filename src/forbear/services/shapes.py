"""Reading off an error, by its shape, what reply it stands for. It imports no client library and judges nothing.

Known are the shapes of httpx, requests, aiohttp, urllib, google-api-core, google-api-python-client and grpc.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from forbear.services.rpc import Metadata
from forbear.services.untyped import is_mapping


def status(error: object) -> int | None:
    """Return the HTTP status that an error stands for, None where there was no response or the call was one of gRPC."""
    found = _plain_status(error)
    return _http(_get(error, "code")) if found is None and code(error) is None else found


def headers(error: object) -> dict[str, str]:
    """The headers of that reply, by lower-case names."""
    places = _get(_get(error, "response"), "headers"), _get(error, "headers"), _get(error, "resp")
    for place in places:
        if is_mapping(place) or _is_message(place):
            return {str(name).lower(): str(value) for name, value in place.items()}
    return {}


def body(error: object) -> bytes:
    """The body of that reply, empty where it was not read."""
    for place in (_get(error, "response"), error):
        content = _get(place, "content")  # raises where it is a stream that was not read
        if isinstance(content, bytes):
            return content
    return b""


def method(error: BaseException) -> str | None:
    """Return the HTTP method of the request that failed, None where the error does not carry it."""
    for cause in causes(error):
        found = _get(_get(cause, "request"), "method")
        if isinstance(found, str):
            return found.upper()
    return None


def code(error: object) -> int | None:
    """Return the number of the gRPC status code that an error stands for, None where it is of no gRPC call."""
    if _plain_status(error) is not None:
        return None
    found = _number(_get(error, "code"))
    if found is None and not _is_http(error):
        found = _number(_get(error, "grpc_status_code"))
    return found


def metadata(error: object) -> Metadata:
    """The trailing metadata of that call, empty where there is none."""
    for place in (error, _get(error, "response")):
        with suppress(Exception):
            return tuple((str(name), value) for name, value in _get(place, "trailing_metadata")())
    return ()


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it wraps, as its cause, its first argument or its `reason`; not what merely came before."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__cause__, _get(found, "reason"), *found.args[:1]]


def names(error: object) -> frozenset[str]:
    """The full names of an error's class and its bases: "requests.exceptions.ConnectionError"."""
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)


def _plain_status(error: object) -> int | None:
    """The status where it goes by no other name; some libraries warn of those who look at a `code`."""
    response, reply = _get(error, "response"), _get(error, "resp")
    places = (
        (response, "status_code"),
        (response, "status"),
        (reply, "status"),
        (error, "status_code"),
        (error, "status"),
    )
    return next((found for place, name in places if (found := _http(_get(place, name))) is not None), None)


def _number(status_code: Any) -> int | None:
    """Return the number of a status code of grpc, or of a method that returns one."""
    with suppress(Exception):
        value: Any = _get(status_code() if callable(status_code) else status_code, "value")
        if isinstance(value, tuple) and isinstance(value[0], int):
            return value[0]
    return None


def _is_http(error: object) -> bool:
    """Return whether an error of google-api-core was made for an HTTP status, though its class names a gRPC code, too.

    The class tells: of those that stand for a status of their own, `from_http_status` makes some (ServiceUnavailable),
    and only gRPC the subclasses that merely add a code (ResourceExhausted). One with a call as its response is gRPC's.
    """
    if _number(_get(_get(error, "response"), "code")) is not None:
        return False
    for kind in type(error).__mro__:
        if vars(kind).get("code") is not None:
            return _http(_get(error, "code")) is not None
        if vars(kind).get("grpc_status_code") is not None:
            return False
    return False


def _get(thing: object, name: str) -> Any:
    """An attribute, None where there is none or reading it fails."""
    with suppress(Exception):
        return getattr(thing, name, None)
    return None


def _is_message(value: Any) -> bool:
    """Return whether a value is a set of headers as the standard library has it."""
    module: Any = sys.modules.get("email.message")  # not cheap to import; before that, nobody has one
    return module is not None and isinstance(value, module.Message)


def _http(value: object) -> int | None:
    return int(value) if isinstance(value, int) and 400 <= value < 600 else None
