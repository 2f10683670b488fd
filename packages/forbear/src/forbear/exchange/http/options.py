"""The options of an HTTP adapter: which policy, service and idempotency token apply to a request."""

from forbear.core import check
from forbear.core.record import Record
from forbear.exchange.call import check_word, refuse_for_clients
from forbear.exchange.chosen import NO_CHANGES, PolicyChanges, refuse_unraised
from forbear.http import bodies
from forbear.http.idempotency import IdempotencyKey
from forbear.http.vouch import NO_VOUCH, Vouch
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from forbear.http.patterns import Origin
    from forbear.http.request import HttpService


BUFFER = bodies.LIMIT


class HttpOptions(Record):
    """The options of one adapter.

    - `policy`: None uses the recommended policy of each request's service, with the `changes`. A policy of a service
      (`cloud_storage.policy`) applies to every host, emulators included. Any other policy brings its limits and
      backoff; known hosts keep their tables.
    - `key`: the header by which some origins drop duplicates. A mutation that carries it is repeatable. It does not
      apply to known services: they have a header of their own, or none.
    - `buffer`: the bytes that are kept of a body that can be read only once, 8 MiB by default.
    - `service`: the service of unknown hosts, by default RFC 9110.
    - `vouch`: the user's word on requests and responses, from `safe` and `not_executed`.
    - `raised`: the bases of the errors that the client raises, by which `on=` of a policy is checked; () for no check.
    """

    __slots__ = ("is_plain", "policy", "key", "buffer", "service", "vouch", "changes", "raised")

    is_plain: bool
    """True if the policy has no part in an attempt that succeeds: no attempt timeout, no budget, no `on_result`."""
    policy: Policy | None
    key: IdempotencyKey | None
    buffer: int
    service: "HttpService"
    vouch: Vouch
    changes: PolicyChanges
    raised: tuple[type[Exception], ...]

    def __init__(
        self,
        policy: Policy | None = None,
        key: IdempotencyKey | None = None,
        buffer: int = BUFFER,
        service: "HttpService" = RFC9110,
        vouch: Vouch = NO_VOUCH,
        changes: PolicyChanges = NO_CHANGES,
        raised: tuple[type[Exception], ...] = (),
    ) -> None:
        check_policy(policy)
        check_policy(changes.sample)
        refuse_unraised(policy, raised)
        _check_key(key)
        check_word("safe", vouch.safe)
        for word in vouch.not_executed.values():
            check_word("not_executed", word)
        check.at_least("buffer", buffer, 0, what="a whole number of bytes", whole=True)
        self._set(policy=policy, key=key, buffer=buffer, service=service, vouch=vouch, changes=changes, raised=raised)
        own = self.sample
        self._set(is_plain=own.attempt_timeout is None and own.budget is None and own.on_result is None)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return cls.__slots__[1:]  # `is_plain` follows from them

    @property
    def sample(self) -> Policy:
        """The policy for hosts that nobody knows, which has all that the user chose."""
        return self.policy or self.changes.sample

    def resolve(self, host: str, path: str) -> "tuple[Policy, HttpService]":
        """Return the policy and the service for a request to `path` on `host`.

        The policy is the user's, else the recommended one. The service is the policy's, else the one known for the host
        and path, else `self.service`.
        """
        policy = self.policy or self.changes.of(registry.recommend(host, path))
        return policy, policy.service or registry.find(host, path) or self.service

    def key_for(self, service: "HttpService", origin: "Callable[[], Origin]") -> IdempotencyKey | None:
        """Return the key by which the API at `origin` drops duplicates, None unless the user named it for this origin.

        Only what no service knows, for which RFC 9110 stands, has one. `origin` is called only if there is a key.
        """
        key = self.key
        return key if key is not None and service == RFC9110 and key.is_for(origin()) else None


def _check_key(key: object) -> None:
    """Raise TypeError for a key that is neither an IdempotencyKey nor None.

    Raises ValueError for a host of a service that forbear knows: its own rules apply there.
    """
    if key is None:
        return
    if not isinstance(key, IdempotencyKey):
        raise TypeError(
            "`idempotency` must be a forbear.IdempotencyKey, which names the header and where the API honours it, "
            'such as IdempotencyKey("Idempotency-Key", "https://api.example.com", add=True), or None; '
            f"got {key!r}"
        )
    for host in key.hosts:
        service = registry.find(host, "/")
        if service is not None:
            raise ValueError(
                f"`origins` must not name services that forbear knows; "
                f"{host!r} is one of {service.name}, whose tables say what may be repeated"
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
    from forbear.services.redis.errors import verdict_of_exception  # when a client is set up, not before

    if policy.on is verdict_of_exception:
        raise TypeError(
            "`policy` must not be the policy of Redis, which judges only errors of Redis; "
            "take the policy of the service you call, or one of forbear.retry(on=...)"
        )
    refuse_for_clients(policy, vouch)


def new_token() -> str:
    """Return a new random token (a UUID) for one logical mutation, to be sent with all its attempts."""
    from uuid import uuid4  # costs more to import than the rest of this package

    return str(uuid4())


_UNSIGNED = ("", "basic", "bearer")


def is_signed(target: str, authorization: str) -> bool:
    """Return whether a URL or an Authorization header has a signature; an unknown scheme counts as one.

    `target` is signed if it contains `signature=` in any case. Basic and Bearer, or no header, are no signature.
    Nothing may be added to a signed request's query, or to its headers of the service. Source: the signing processes of
    Cloud Storage and Amazon S3 (versions 2 and 4), which cover the whole query and every header whose name begins with
    `x-goog-` or `x-amz-`.
    """
    return "signature=" in target.lower() or authorization.partition(" ")[0].lower() not in _UNSIGNED
