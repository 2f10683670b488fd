"""Reading off an error, by its shape, what reply it stands for. It imports no client library and judges nothing.

Known are the shapes of httpx, requests, aiohttp, urllib, google-api-core, google-api-python-client and grpc.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from forbear.services.rpc import Metadata
from forbear.services.untyped import is_mapping


def status(error: object) -> int | None:
    """The HTTP status that an error stands for, None where there was no reply."""
    of_response = _of_response(error)
    if of_response is not None:
        return of_response
    if code(error) is not None:
        return None
    reply: Any = getattr(error, "resp", None)
    places = ((reply, "status"), (error, "status_code"), (error, "status"), (error, "code"))
    return next((found for place, name in places if (found := _http(getattr(place, name, None))) is not None), None)


def headers(error: object) -> dict[str, str]:
    """The headers of that reply, by lower-case names."""
    for place in (getattr(error, "response", None), error):
        found: Any = getattr(place, "headers", None)
        if hasattr(found, "items"):
            return {str(name).lower(): str(value) for name, value in found.items()}
    reply: Any = getattr(error, "resp", None)
    return {str(name).lower(): str(value) for name, value in reply.items()} if is_mapping(reply) else {}


def body(error: object) -> bytes:
    """The body of that reply, empty where it was not read."""
    for place in (getattr(error, "response", None), error):
        with suppress(Exception):  # a body that is a stream may be unread, or broken
            content: Any = getattr(place, "content", None)
            if isinstance(content, bytes):
                return content
    return b""


def code(error: object) -> int | None:
    """The number of the gRPC status code that an error stands for, None where it is of no call."""
    if _of_response(error) is not None:
        return None
    for name in ("code", "grpc_status_code"):
        found: Any = getattr(error, name, None)
        with suppress(Exception):
            value: Any = getattr(found() if callable(found) else found, "value", None)
            if isinstance(value, tuple) and value and isinstance(value[0], int):
                return value[0]
    return None


def metadata(error: object) -> Metadata:
    """The trailing metadata of that call, empty where there is none."""
    for place in (error, getattr(error, "response", None)):
        trailing: Any = getattr(place, "trailing_metadata", None)
        with suppress(Exception):
            return tuple((str(name), value) for name, value in trailing())
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
            waiting += [found.__cause__, getattr(found, "reason", None), *found.args[:1]]


def names(error: object) -> frozenset[str]:
    """The full names of an error's class and its bases: "requests.exceptions.ConnectionError"."""
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)


def _of_response(error: object) -> int | None:
    response: Any = getattr(error, "response", None)
    found = _http(getattr(response, "status_code", None))
    return _http(getattr(response, "status", None)) if found is None else found


def _http(value: object) -> int | None:
    return int(value) if isinstance(value, int) and 400 <= value < 600 else None
