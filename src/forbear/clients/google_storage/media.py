"""One request of an upload or download of google-cloud-storage, read off the function that sends it.

The rule: a chunk of a resumable upload that failed is never sent again blindly. Its session is asked how much it has,
and only the rest is sent. A function that keeps its request in another way is not understood, and nothing is guessed.
"""

from collections.abc import Callable, Mapping
from inspect import getclosurevars, isfunction
from typing import Any

from requests.structures import CaseInsensitiveDict

from forbear.exchange.chunk import Chunk
from forbear.exchange.send import WHOLE_BODY, Send
from forbear.exchange.session import Session
from forbear.exchange.storage_calls import of_upload
from forbear.http.request import Request
from forbear.services.cloud_storage.service import RECOMMENDED

_HASH = "x-goog-hash"  # of the whole object, which a question does not complete


def sent_by(function: Callable[..., Any]) -> "Sending | None":
    """Return the request that a function of the client's uploads sends, None where it does not show."""
    if not isfunction(function):
        return None
    names: Mapping[str, Any] = getclosurevars(function).nonlocals
    if not {"self", "transport", "method", "url", "payload", "headers", "timeout"} <= names.keys():
        return None
    payload = names["payload"]
    return None if payload is not None and not isinstance(payload, bytes) else Sending(names)


class Sending:
    """One request, by the variables of the function that sends it."""

    __slots__ = ("_names", "_session", "request")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._session: Session | None = None
        self.request: Request = of_upload(names["method"], names["url"], names["headers"], names["payload"] or b"")

    def can_resume(self) -> bool:
        """Return whether the request is a chunk that can be continued once its session was asked."""
        if self._session is None:
            chunk = Chunk.of(self.request) if hasattr(self._names["self"], "_process_resumable_response") else None
            self._session = None if chunk is None else Session(chunk)
        return self._session is not None

    def has_got_on(self) -> bool:
        """Return whether the session turned out to have more than when this was asked last."""
        return self._session is not None and self._session.has_got_on()

    def resume(self) -> Any:
        """Ask the session what it has, send the rest of the chunk, and return the response as the client takes it."""
        session: Any = self._session
        response = self._send(session.ask(RECOMMENDED, self.request))
        headers = {name.lower(): value for name, value in response.headers.items()}
        rest = session.answered(response.status_code, headers)
        if rest is not None:
            response = self._send(rest)
        self._names["self"]._process_resumable_response(response, len(self._names["payload"]))
        return response

    def _send(self, send: Send) -> Any:
        names = self._names
        headers: CaseInsensitiveDict[Any] = CaseInsensitiveDict(names["headers"])
        headers.update(send.headers)
        headers.pop("content-length", None)  # the session of requests counts it
        if send.skip is None:
            headers.pop(_HASH, None)
        if send.skip != 0:
            for name in WHOLE_BODY:
                headers.pop(name, None)
        body = b"" if send.skip is None else names["payload"][send.skip :]
        return names["transport"].request(
            names["method"], names["url"], data=body, headers=headers, timeout=names["timeout"]
        )
