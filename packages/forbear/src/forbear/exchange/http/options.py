"""The options of an HTTP adapter: which policy, service and idempotency key apply to a request."""

import sys

from forbear.core import check
from forbear.core.record import Record
from forbear.exchange.call_state import check_word, refuse_for_clients
from forbear.exchange.chosen import NO_CHANGES, PolicyChanges, choose, refuse_unraised
from forbear.http import bodies
from forbear.http.api import Api, IdempotencyKey
from forbear.http.vouch import NO_VOUCH, Vouch
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from forbear.exchange.http.settling import Settle, SettleWord
    from forbear.http.patterns import Origin
    from forbear.http.request import HttpService
    from forbear.http.vouch import Apis, Safe


BUFFER = bodies.LIMIT


class HttpOptions(Record):
    """The options of one adapter.

    - `policy`: None uses the recommended policy of each request's service, with the `changes`. A policy of a service
      (`cloud_storage.policy`) applies to every host, emulators included. Any other policy brings its limits and
      backoff; known hosts keep their tables.
    - `buffer`: the bytes that are kept of a body that can be read only once, 8 MiB by default.
    - `service`: the service of unknown hosts, by default RFC 9110.
    - `vouch`: the user's word on requests, from `safe` and `apis`.
    - `settle`: the user's word on what settles the doubt about a write, None for none.
    - `raised`: the bases of the errors that the client raises, by which `on=` of a policy is checked; () for no check.

    >>> policy = forbear.retry(ConnectionError, attempts=3)
    >>> refuse_for_clients(policy, "use safe=")  # a ValueError for repeatable=True
    >>> chosen, service = HttpOptions(policy).resolve("storage.googleapis.com", "/storage/v1/b", lambda: None)
    >>> chosen.limits, service.name
    (Limits(attempts=3), 'cloud_storage')
    """

    __slots__ = ("is_plain", "policy", "buffer", "service", "vouch", "changes", "raised", "settle")

    is_plain: bool
    """True if the policy has no part in an attempt that succeeds: no attempt timeout, no budget, no `on_result`."""
    policy: Policy | None
    buffer: int
    service: "HttpService"
    vouch: Vouch
    changes: PolicyChanges
    raised: tuple[type[Exception], ...]
    settle: "SettleWord | None"

    def __init__(
        self,
        policy: Policy | None = None,
        buffer: int = BUFFER,
        service: "HttpService" = RFC9110,
        vouch: Vouch = NO_VOUCH,
        changes: PolicyChanges = NO_CHANGES,
        raised: tuple[type[Exception], ...] = (),
        settle: "SettleWord | None" = None,
    ) -> None:
        check_policy(policy)
        check_policy(changes.sample)
        refuse_unraised(policy, raised)
        check_word("safe", vouch.safe)
        for api in vouch.apis:
            _check_api(api)
        check.at_least("buffer", buffer, 0, what="a whole number of bytes", whole=True)
        self._set(policy=policy, buffer=buffer, service=service, vouch=vouch, changes=changes, raised=raised)
        self._set(settle=settle)
        own = self.sample
        self._set(is_plain=own.attempt_timeout is None and own.budget is None and own.on_result is None)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return cls.__slots__[1:]  # `is_plain` follows from them

    @property
    def sample(self) -> Policy:
        """The policy for hosts that nobody knows, which has all that the user chose."""
        return self.policy or self.changes.sample

    def show_as(self, adapter: str) -> str:
        """Return the call that makes the adapter with these options, without those that have their defaults."""
        shown = [] if self.policy is None else [repr(self.policy)]
        shown += [f"{name}={value!r}" for name, value in self.changes.options.items()]
        shown += [f"{name}={getattr(self.vouch, name)!r}" for name in ("safe", "apis") if getattr(self.vouch, name)]
        shown += [] if self.settle is None else [f"settle={self.settle.settle!r}"]
        return f"{adapter}({', '.join(shown)})"

    def resolve(self, host: str, path: str, origin: "Callable[[], Origin]") -> "tuple[Policy, HttpService]":
        """Return the policy and the service for a request to `path` on `host`.

        The policy is the user's, else the recommended one. The service is the policy's, else the one known for the host
        and path, else the one that an API of the user names for the origin, else `self.service`. `origin` is called
        only if there are such APIs.
        """
        service = (None if self.policy is None else self.policy.service) or registry.find(host, path)
        policy = self.policy or self.changes.of(registry.recommend(host, path))
        if service is None and self.vouch.apis:
            api = self.vouch.find_own_api(origin())
            named = None if api is None else api.find_service(path)
            if named is not None:
                service = find_service(named)
                policy = self.policy or self.changes.of(registry.policy(named) or policy)
        return policy, service or self.service

    def key_for(self, service: "HttpService", origin: "Callable[[], Origin]") -> IdempotencyKey | None:
        """Return the key by which the API at `origin` drops duplicates, None unless the user named it for this origin.

        Only what no service knows, for which RFC 9110 stands, has one. `origin` is called only if there are APIs.
        """
        if not self.vouch.apis or service != RFC9110:
            return None
        api = self.vouch.find_own_api(origin())
        return None if api is None else api.key


def read_options(
    adapter: str,
    policy: Policy | None,
    changes: "Mapping[str, Any]",
    raised: tuple[type[Exception], ...],
    own: tuple[str, ...] = (),
    *,
    safe: "Safe" = (),
    apis: "Apis" = (),
    settle: "Settle" = False,
    buffer: int = BUFFER,
) -> HttpOptions:
    """Return the options as a user passes them to an adapter; TypeError or ValueError for wrong ones.

    `changes` are the keywords that change the policy. `own` are those of this adapter alone, for the text of an error.
    """
    chosen, changed = choose(adapter, policy, changes, (*own, "safe", "apis", "settle", "buffer"))
    word = None
    if settle is not False:
        from forbear.exchange.http.settling import SettleWord  # few use it

        word = SettleWord(settle)
    return HttpOptions(chosen, buffer, vouch=Vouch(safe, apis), changes=changed, raised=raised, settle=word)


def find_service(name: str) -> "HttpService":
    """Return the service of HTTP requests called `name`; ValueError if there is none."""
    service: Any = registry.service(name) if name in registry.names_for_apis() else None
    if not hasattr(service, "token_header"):
        known = ", ".join(each for each in registry.names_for_apis() if hasattr(registry.service(each), "token_header"))
        raise ValueError(f"`service` of an Api must be one of {known}; got {name!r}")
    found: HttpService = service
    return found


def _check_api(api: Api) -> None:
    """Raise ValueError for an API whose service is unknown, or that contradicts the tables of a known service."""
    if api.service is not None:
        find_service(api.service)
    known = registry.find(api.shown_host, "/")
    if known is not None and (api.key is not None or api.service is not None):
        raise ValueError(
            f"`apis` must name no `key` and no `service` for hosts that forbear knows; {api.shown_host!r} is one of "
            f"{known.name}, whose tables say what may be repeated"
        )


_VOUCH = (
    'vouch for the requests that may be executed twice: safe="POST https://api.example.com/v1/search*" in the adapter, '
    "or a block of `with forbear.safe_to_repeat(...):`"
)


def check_policy(policy: object, vouch: str = _VOUCH) -> None:
    """Raise TypeError for an object that is neither a policy nor None, and for Redis's policy.

    Redis's policy takes all HTTP errors for permanent. Raises ValueError for a policy with `repeatable=True`, whose
    text says by `vouch` what to write instead.
    """
    if policy is None:
        return
    if not isinstance(policy, Policy):
        raise TypeError(f"`policy` must be a forbear.Policy or None (each service's own), got {policy!r}")
    redis = sys.modules.get("forbear.services.redis.errors")  # without it, no policy can have its function
    if redis is not None and policy.on is redis.verdict_of_exception:
        raise TypeError(
            "`policy` must not be the policy of Redis, which judges only errors of Redis; "
            "take the policy of the service you call, or one of forbear.retry(on=...)"
        )
    refuse_for_clients(policy, vouch)


def new_token() -> str:
    """Return a new random token (a UUID) for one logical mutation, to be sent with all its attempts."""
    from uuid import uuid4  # costs more to import than the rest of this package

    return str(uuid4())
