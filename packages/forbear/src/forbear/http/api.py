"""`Api`: what is known of the API at one origin, and `IdempotencyKey`, the header by which it drops duplicates."""

from collections.abc import Iterable, Mapping

from forbear.core import check
from forbear.core.record import UserRecord
from forbear.core.service import OperationSet
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http.patterns import Cover, Pattern, origin_of
from forbear.http.status import THROTTLED_STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.http.patterns import Origin

UNKNOWN_SPAN = 300.0
"""The seconds for which an API remembers keys, if nobody says: the shortest span among known services."""

IN_USE = 409
"""The status by which an API says that the request with the same key is still being executed.

Source: draft-ietf-httpapi-idempotency-key-header, §2.7. A key that was used for another request is answered 422.
"""

UNITS = ("seconds", "milliseconds", "duration", "epoch", "epoch_milliseconds", "rfc3339")
"""The units of headers that ask for a wait: numbers, texts such as "6m0s", and moments."""

_EXAMPLE = '"https://api.example.com"'
_MILLISECONDS = frozenset({"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"})
_OVERLOADED = THROTTLED_STATUSES | {529}


class IdempotencyKey(UserRecord):
    """A header by which an API drops duplicates, for `Api(key=...)`: `IdempotencyKey("Idempotency-Key", hours=24)`.

    A write that carries the header may be repeated, since all its attempts carry the same key. The response 409 means
    that a request with the same key is still being executed, and is transient. To a new key that no server has seen
    yet, a 409 is an ordinary conflict. A 422 is permanent.

    - `header`: the name of the header.
    - `hours`: for how long the API remembers a key; by default 5 minutes. No request is repeated by its key later than
      90 % of that time after the first attempt.
    - `add`: with True, a write without the header gets a new key, a UUID. By default only the caller's keys count.

    TypeError or ValueError for wrong values.

    >>> forbear.IdempotencyKey("Idempotency-Key", hours=24, add=True)
    IdempotencyKey(header='Idempotency-Key', hours=24, add=True)
    """

    __slots__ = ("header", "hours", "add")

    header: str
    hours: float | None
    add: bool

    def __init__(self, header: str, *, hours: float | None = None, add: bool = False) -> None:
        if not _is_name(header):
            raise TypeError(f'`header` must be the name of a header, such as "Idempotency-Key"; got {header!r}')
        if hours is not None:
            check.positive("hours", hours, what="a number of hours, or None (5 minutes)")
        check.flag("add", add)
        self._set(header=header, hours=hours, add=add)

    @property
    def span(self) -> float:
        """The seconds after its first use within which a key counts: 90 % of the time that the API remembers it."""
        return 0.9 * (UNKNOWN_SPAN if self.hours is None else self.hours * 3600)

    def shorten(self, seconds: float | None) -> "IdempotencyKey":
        """Return the key with a span of at most so many seconds, because it was used before; None changes nothing."""
        return self if seconds is None or seconds >= self.span else self.replace(hours=seconds / 0.9 / 3600)


class Api(UserRecord):
    """Facts of the API at one origin, for `apis=` of adapters: `Api("https://api.example.com", transient=[409])`.

    - `origin`: scheme, host and port. `*` may stand for the first label of the host ("https://*.example.com").
    - `safe`: the requests that may be executed twice, as patterns without the origin: "POST /v1/search*"; or
      `forbear.at_least_once`, for an emulator of Pub/Sub.
    - `service`: the name of the service whose table knows its operations ("cloud_storage", or "llm" for a language
      model), instead of patterns.
    - `graphql`: the path of its GraphQL, such as "/graphql". A request there that holds queries only is a read.
    - `key`: the header by which it drops duplicates.
    - `not_executed`: statuses by which it refuses requests before it executes them. Any request is then repeated.
    - `transient`: statuses of errors that may go away, beyond 408, 429, 500, 502, 503 and 504.
    - `throttles`: statuses that mean overload if the response asks for a wait, and are permanent otherwise.
    - `wait_headers`: headers that ask for a wait, beyond those that every API may send, each with its unit:
      {"x-ratelimit-reset": "epoch"}. The units are "seconds", "milliseconds", "duration" ("6m0s"), "epoch",
      "epoch_milliseconds" and "rfc3339".
    - `retry_headers`: headers that say whether to retry. "false" always stops. "true" makes an error transient; it
      makes no request safe to repeat.

    TypeError or ValueError for wrong values.

    >>> forbear.Api("https://api.example.com", not_executed=[429]).origin
    'https://api.example.com'
    """

    __slots__ = (
        "origin", "safe", "service", "graphql", "key", "not_executed", "transient", "throttles", "wait_headers",
        "retry_headers", "patterns", "_parsed",
    )  # fmt: skip

    origin: str
    safe: tuple[str, ...]
    service: str | None
    graphql: str | None
    key: IdempotencyKey | None
    not_executed: frozenset[int]
    transient: frozenset[int]
    throttles: frozenset[int]
    wait_headers: Mapping[str, str]
    retry_headers: tuple[str, ...]
    patterns: tuple[Cover, ...]
    _parsed: "Origin"

    def __init__(
        self,
        origin: str,
        *,
        safe: str | Iterable[str] = (),
        service: str | None = None,
        graphql: str | None = None,
        key: IdempotencyKey | None = None,
        not_executed: Iterable[int] = (),
        transient: Iterable[int] = (),
        throttles: Iterable[int] = (),
        wait_headers: Mapping[str, str] | Iterable[str] = (),
        retry_headers: str | Iterable[str] = (),
    ) -> None:
        parsed = _parse_origin(origin)
        listed = _texts("safe", safe, '"POST /v1/search*"')
        if listed and "*" in origin:
            raise ValueError(f"`safe` needs one host; write the `origin` out, got {origin!r}")
        _check_kind("service", service, str, 'the name of a service, such as "cloud_storage"')
        _check_kind("key", key, IdempotencyKey, 'an IdempotencyKey, such as IdempotencyKey("Idempotency-Key")')
        _check_kind("graphql", graphql, str, 'the path of its GraphQL, such as "/graphql"')
        if graphql is not None and not graphql.startswith("/"):
            raise ValueError(f'`graphql` must be a path, such as "/graphql"; got {graphql!r}')
        if service is not None and (listed or key is not None):
            raise ValueError(f"`service` decides what is safe, without `safe` and `key`; got {service!r} and more")
        self._set(origin=origin, safe=listed, service=service, graphql=graphql, key=key, _parsed=parsed)
        self._set(patterns=tuple(_pattern(text, origin.rstrip("/")) for text in listed))
        self._set(not_executed=_statuses("not_executed", not_executed))
        self._set(transient=_statuses("transient", transient), throttles=_statuses("throttles", throttles))
        self._set(wait_headers=_units(wait_headers), retry_headers=_names("retry_headers", retry_headers))

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-2]  # the others follow from them

    def __hash__(self) -> int:
        return hash((self.origin, self.safe, self.key))

    def is_for(self, origin: "Origin") -> bool:
        """Return whether this is the API at `origin` (`Request.origin`)."""
        scheme, host, port = self._parsed
        if "*" in self.origin:
            return (scheme, port) == (origin[0], origin[2]) and host.partition(".")[2] == origin[1].partition(".")[2]
        return self._parsed == origin

    def find_service(self, path: str) -> str | None:
        """Return the name of the service that judges a request to `path`, None without; a query after it is ignored."""
        return "graphql" if path.partition("?")[0] == self.graphql else self.service

    @property
    def shown_host(self) -> str:
        """The host of the origin as the user wrote it, without scheme and port."""
        return self._parsed[1].replace("any.", "*.", 1) if "*" in self.origin else self._parsed[1]

    def refine(
        self, verdict: Verdict, status: int, headers: Mapping[str, str], *, has_wait: bool, may_refuse: bool = True
    ) -> Verdict:
        """Return the verdict on a response, as this API means its `status` and `headers` (in lower case).

        `verdict` is the one by the tables. `has_wait` says whether the response asks for a wait. With `may_refuse`
        False, no status means that the request was not executed.
        """
        said = (word for name in self.retry_headers for word in headers.get(name, "").split(","))
        words = {word.strip().lower() for word in said}
        if "false" in words:
            return PERMANENT
        if may_refuse and status in self.not_executed:
            return verdict.replace(kind=Kind.NOT_EXECUTED)
        if verdict.kind is not Kind.PERMANENT:
            return verdict
        if status in self.transient or "true" in words or (has_wait and status in self.throttles):
            return _THROTTLED if status in _OVERLOADED or status in self.throttles else TRANSIENT
        return verdict

    def join(self, other: "Api") -> "Api":
        """Return this API with the statuses and headers of `other` besides its own."""
        return self.replace(
            not_executed=self.not_executed | other.not_executed,
            transient=self.transient | other.transient,
            throttles=self.throttles | other.throttles,
            wait_headers={**other.wait_headers, **self.wait_headers},
            retry_headers=tuple(dict.fromkeys((*self.retry_headers, *other.retry_headers))),
        )


_THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
_ORIGIN = f"`origin` must be a scheme and a host, such as {_EXAMPLE}"


def _parse_origin(origin: object) -> "Origin":
    return origin_of(origin.replace("//*.", "//any.", 1) if isinstance(origin, str) else origin, _ORIGIN)


def check_apis(apis: object) -> tuple[Api, ...]:
    """Return the APIs of an adapter's `apis` as a tuple; TypeError or ValueError for wrong ones.

    Two for one host are refused, unless they have ports of their own; so is a host beside a `*` that covers it.
    """
    rule = f"`apis` must be one forbear.Api or several, such as [forbear.Api({_EXAMPLE})]"
    listed: tuple[object, ...] = (apis,) if isinstance(apis, Api) else _tuple(apis, rule)
    for api in listed:
        if not isinstance(api, Api):
            raise TypeError(f"{rule}; got {check.shown(api)}")
    checked = tuple(api for api in listed if isinstance(api, Api))
    for at, api in enumerate(checked):
        for other in checked[:at]:
            if _overlap(api, other):
                raise ValueError(
                    f"`apis` must name each host once, by one scheme; got {other.origin!r} and {api.origin!r}"
                )
    return checked


def _overlap(api: Api, other: Api) -> bool:
    """Return whether two APIs have hosts in common, at one port or at the default ports."""
    (_, host, port), (_, another, its) = api._parsed, other._parsed
    if "*" in api.origin or "*" in other.origin:
        host, another = host.partition(".")[2], another.partition(".")[2]
    return host == another and (port == its or {port, its} == {80, 443})


def _check_kind(parameter: str, value: object, kind: type, what: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"`{parameter}` must be {what}, or None; got {value!r}")


def _is_name(header: object) -> bool:
    return isinstance(header, str) and header.isascii() and header.replace("-", "").replace("_", "").isalnum()


def _tuple(values: "Any", rule: str) -> tuple[object, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{rule}; got {check.shown(values)}")
    return tuple(values)


def _texts(parameter: str, values: object, example: str) -> tuple[str, ...]:
    rule = f"`{parameter}` must be a text such as {example}, or several"
    listed = check.list_values(values, rule)
    texts = tuple(text for text in listed if isinstance(text, str))
    if len(texts) < len(listed):
        raise TypeError(f"{rule}; got {check.shown(values)}")
    return texts


def _pattern(text: str, origin: str) -> Cover:
    if isinstance(text, OperationSet):
        return text.bind(origin)
    method, space, path = text.partition(" ")
    if not space or not path.startswith("/"):
        raise ValueError(f'`safe` must hold methods and paths without the origin, as "POST /search*"; got {text!r}')
    return Pattern(f"{method} {origin}{path}")


def _statuses(parameter: str, values: object) -> frozenset[int]:
    rule = f"`{parameter}` must hold statuses from 400 to 599, such as [429, 503]"
    statuses = set[int]()
    for status in _tuple(values, rule):
        if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status <= 599:
            raise ValueError(f"{rule}; got {check.shown(status)}")
        statuses.add(status)
    return frozenset(statuses)


def _names(parameter: str, values: object) -> tuple[str, ...]:
    names = _texts(parameter, values, '"x-should-retry"')
    for name in names:
        if not _is_name(name):
            raise ValueError(f"`{parameter}` must hold names of headers, got {name!r}")
    return tuple(name.lower() for name in names)


def _units(headers: "Any") -> dict[str, str]:
    """Return headers in lower case with their units; a header of known milliseconds needs none."""
    rule = f'`wait_headers` must map names of headers to one of {", ".join(UNITS)}: {{"x-ratelimit-reset": "epoch"}}'
    if check.is_mapping(headers):
        units: Mapping[object, object] = headers
        for name, unit in units.items():
            if not _is_name(name) or unit not in UNITS:
                raise ValueError(f"{rule}; got {name!r}: {unit!r}")
        return {str(name).lower(): str(unit) for name, unit in units.items()}
    names = _names("wait_headers", headers)
    for name in names:
        if name not in _MILLISECONDS:
            raise ValueError(f"{rule}; got {name!r} without a unit")
    return dict.fromkeys(names, "milliseconds")
