"""How an adapter was set up: which policy and which service apply to a request, and what identifies a mutation."""

from forbear.core import check
from forbear.core.record import Record
from forbear.http import bodies
from forbear.http.method import READS
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.http.request import HttpService


BUFFER = bodies.LIMIT


class HttpOptions(Record):
    """The set-up of one adapter.

    `policy` None takes the recommended policy of whatever service a request goes to. A policy with a service of its own
    (`cloud_storage.policy`) holds for every host, emulators included; any other policy brings its limits and its
    backoff, and known hosts keep their tables. `idempotency_header` names a header by which the API drops duplicates,
    such as "Idempotency-Key": every mutation carries one token for all its attempts, which makes any operation
    repeatable, except at services that are known: they have a header of their own or none. `buffer` is how many bytes
    of a one-shot body are kept for a repeat, 8 MiB by default. `service` is that of hosts nobody knows, by default what
    RFC 9110 says.
    """

    __slots__ = ("policy", "idempotency_header", "buffer", "service")

    policy: Policy | None
    idempotency_header: str | None
    buffer: int
    service: "HttpService"

    def __init__(
        self,
        policy: Policy | None = None,
        idempotency_header: str | None = None,
        buffer: int = BUFFER,
        service: "HttpService" = RFC9110,
    ) -> None:
        check_policy(policy)
        if idempotency_header is not None and not _is_name(idempotency_header):
            raise TypeError(f"`idempotency_header` must be the name of a header or None, got {idempotency_header!r}")
        check.at_least("buffer", buffer, 0, what="a whole number of bytes", whole=True)
        self._set(policy=policy, idempotency_header=idempotency_header, buffer=buffer, service=service)

    @property
    def is_plain(self) -> bool:
        """Whether the policy has no part in an attempt that succeeds."""
        policy = self.policy
        return policy is None or (policy.attempt_timeout is None and policy.budget is None and policy.on_result is None)

    def resolve(self, host: str, path: str) -> "tuple[Policy, HttpService]":
        """The policy and the service for a request to `path` on `host`."""
        policy = self.policy or registry.recommended(host, path)
        return policy, policy.service or registry.find(host, path) or self.service

    def token_header(self, service: "HttpService", method: str) -> str | None:
        """The header that carries the idempotency token of a request, None for a request that needs none."""
        if method in READS:
            return None
        return self.idempotency_header if self.protects(service) else service.token_header

    def adds_token(self, method: str, host: str, target: str) -> bool:
        """Return whether a request is to carry an idempotency token; `target` is its path and query."""
        return method not in READS and self.token_header(self.resolve(host, target)[1], method) is not None

    def protects(self, service: "HttpService") -> bool:
        """Whether the token makes any operation repeatable: at APIs that nobody knows but who named the header."""
        return self.idempotency_header is not None and service == RFC9110


def check_policy(policy: object) -> None:
    """Refuse what is no policy, and that of Redis, to which every other error is a permanent one."""
    if policy is None:
        return
    if not isinstance(policy, Policy):
        raise TypeError(f"`policy` must be a forbear.Policy or None (each service's own), got {policy!r}")
    from forbear.services.redis.errors import verdict_of_exception  # when a client is set up, not before

    if policy.on is verdict_of_exception:
        raise TypeError(
            "`policy` must not be that of Redis, which knows no other errors than those of Redis; "
            "take that of the service that is called, or one of forbear.retry(on=...)"
        )


def _is_name(header: object) -> bool:
    return isinstance(header, str) and header.isascii() and header.replace("-", "").replace("_", "").isalnum()


def new_token() -> str:
    """A token for one logical mutation, equal on all its attempts."""
    from uuid import uuid4  # costs more to import than the rest of this package

    return str(uuid4())


_UNSIGNED = ("", "basic", "bearer")


def is_signed(target: str, authorization: str) -> bool:
    """Whether a URL or an Authorization header carries a signature; a scheme that is not known counts as one."""
    return "signature=" in target.lower() or authorization.partition(" ")[0].lower() not in _UNSIGNED
