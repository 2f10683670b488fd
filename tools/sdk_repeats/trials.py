"""One trial: a client makes one call of an operation, and the server counts how often it is executed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import forbear
from tools.sdk_repeats.origin import Origin, Request, Response

FAULTS: Mapping[str, Response | None] = {
    "lost": None,
    "503": Response(503),
}
"""The response to the first request of each kind of trial, after it was executed; None loses it."""


@dataclass(frozen=True)
class Operation:
    """One operation of a client.

    - `call` makes the call with the client.
    - `main` matches the method and the target of its request, by default of all that may write.
    - `second` says what a second execution does, "" if it does nothing more.
    - `respond` returns the response of a success, None for the library's.
    """

    name: str
    call: Callable[[Any], object]
    second: str
    main: str = "POST|PUT|PATCH|DELETE"
    respond: Callable[[], Response] | None = None


@dataclass(frozen=True)
class Library:
    """A client library, and how it is set up.

    - `packages` are the distributions whose versions count.
    - `make` returns the client for a URL: "default", with its retries "off", and with forbear's ("forbear").
    - `off` is the line that turns its retries off, and `forbear` the one that puts forbear's in their place.
    - `respond` returns the response to a request that succeeds.
    - `key` returns the key by which the service recognises a repeat, as it documents, None without.
    - `run` runs one trial on a server that does not speak HTTP; only responses are lost there.
    """

    name: str
    packages: Sequence[str]
    make: Callable[[str, str], Any]
    off: str
    forbear: str
    operations: Sequence[Operation]
    respond: Callable[[Request], Response] = lambda request: Response()
    key: Callable[[Request], str | None] = lambda request: None
    note: str = ""
    run: "Callable[[Library, Operation, str, str], dict[str, Any]] | None" = None


class Guarded:
    """A client whose calls are functions with forbear's decorator, and `options`."""

    def __init__(self, client: Any, **options: Any) -> None:
        self._client, self._options = client, options

    def __getattr__(self, name: str) -> Any:
        return forbear.retry(forbear.transient, **self._options)(getattr(self._client, name))


def run(library: Library, operation: Operation, mode: str, fault: str) -> dict[str, Any]:
    """Run one trial, and return how many requests were `sent` and `executed`, and the `error` of the call, or None.

    A request with a key that the service has seen is not executed.
    """
    if library.run is not None:
        return library.run(library, operation, mode, fault)

    def respond(request: Request) -> Response:
        return library.respond(request) if operation.respond is None else operation.respond()

    main = re.compile(operation.main)
    with Origin(lambda request: main.match(request.line) is not None, respond, FAULTS[fault]) as origin:
        error = call(operation, library.make(origin.url, mode))
    return count([library.key(request) for request in origin.executed], error)


def call(operation: Operation, client: Any) -> str | None:
    """Make the call, and return the name of the error that it raised, None for a value."""
    try:
        operation.call(client)
    except Exception as error:  # each library has its own
        return type(error).__qualname__
    return None


def count(keys: list[str | None], error: str | None) -> dict[str, Any]:
    """Return the result of a trial, from the keys of all requests that arrived, and the error of the call."""
    return {"sent": len(keys), "executed": keys.count(None) + len(set(keys) - {None}), "error": error}


def faults_of(library: Library) -> list[str]:
    """Return the names of the faults that a library can meet."""
    return list(FAULTS) if library.run is None else ["lost"]
