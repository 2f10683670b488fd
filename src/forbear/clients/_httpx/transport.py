"""Retries around the transport of httpx or httpx2, sync and async; the two differ in name only. It imports neither."""

from collections.abc import Awaitable, Callable
from typing import Any

from forbear.clients._httpx.errors import HttpxLibrary
from forbear.clients._httpx.port import AsyncHttpxPort, HttpxPort
from forbear.core.report import EXTENSION
from forbear.exchange.http import adrive, drive
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.responses import WHOLE_OR_PART, FirstResult
from forbear.run.switch import is_off

OVERRIDE = "forbear"
"""The request extension that sets the policy of one request, None to send it once."""


def handle(settings: HttpOptions, library: HttpxLibrary, send: Callable[[Any], Any], request: Any) -> Any:
    """Send a request through `send` as often as its policy allows, and return the reply."""
    chosen = _chosen(settings, request)
    if chosen is None:
        return send(request)
    port = HttpxPort(chosen, library, send, request)
    if port.is_plain and request.method == "GET":  # most requests are, and nearly all of them succeed at once
        try:
            response = send(request)
        except Exception as error:
            port.outcome = FirstResult(error)
        else:
            if response.status_code in WHOLE_OR_PART:
                return _watched(port, library, response)
            port.outcome = FirstResult(response)
    response = drive.drive(port)
    if port.report is not None:
        response.extensions[EXTENSION] = port.report
    return _watched(port, library, response) if port.needs_reader(response) else response


async def ahandle(
    settings: HttpOptions, library: HttpxLibrary, send: Callable[[Any], Awaitable[Any]], request: Any
) -> Any:
    """Send a request through `send` as often as its policy allows, and return the reply."""
    chosen = _chosen(settings, request)
    if chosen is None:
        return await send(request)
    port = AsyncHttpxPort(chosen, library, send, request)
    if port.is_plain and request.method == "GET":
        try:
            response = await send(request)
        except Exception as error:
            port.outcome = FirstResult(error)
        else:
            if response.status_code in WHOLE_OR_PART:
                return _awatched(port, library, response)
            port.outcome = FirstResult(response)
    response = await adrive.drive(port)
    if port.report is not None:
        response.extensions[EXTENSION] = port.report
    return _awatched(port, library, response) if port.needs_reader(response) else response


def _watched(port: HttpxPort, library: HttpxLibrary, response: Any) -> Any:
    """The response with a body that comes through a Reader."""
    raw = response.stream
    response.stream = library.ReplyBody(port, response.status_code, response.headers, iter(raw), raw.close)
    return response


def _awatched(port: AsyncHttpxPort, library: HttpxLibrary, response: Any) -> Any:
    """The response with a body that comes through an AsyncReader."""
    raw = response.stream
    response.stream = library.AsyncReplyBody(port, response.status_code, response.headers, aiter(raw), raw.aclose)
    return response


def _chosen(settings: HttpOptions, request: Any) -> HttpOptions | None:
    """The settings for one request, None to send it once and as it is."""
    if is_off():
        return None
    extensions = request.extensions
    if OVERRIDE not in extensions:
        return settings
    policy = extensions[OVERRIDE]
    return None if policy is None else settings.replace(policy=policy)
