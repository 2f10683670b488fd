"""The retry settings of one client, and the checks that nothing else retries beside them."""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from forbear.core.check import INFINITY
from forbear.exchange.call_state import first_limit, refuse_for_clients
from forbear.exchange.chosen import KEYWORDS_OF_CLIENTS, refuse_unraised
from forbear.policy import Policy
from forbear.run.budget import HostBudgets
from forbear.run.runtime import AttemptTimeout
from forbear.services.redis.errors import policy as _recommended
from forbear.services.redis.errors import verdict_of_exception
from forbear.services.redis.vouch import safe_commands

RECOMMENDED = _recommended()

_RETRIES = (
    "retry", "retry_on_error", "retry_on_timeout", "cluster_error_retry_attempts", "connection_error_retry_attempts",
)  # fmt: skip


_VOUCH = 'vouch for the commands that may be executed twice, as in safe="INCR" or `with promised("idempotent"):`'


class RedisSettings:
    """The retry settings of one client.

    `policy` None sends everything once. `limit` is the timeout of the first attempt in seconds, None without an attempt
    timeout. `tables` is true if the policy judges errors as the service does; any other policy overrules the tables on
    errors. `is_plain` is true if a first attempt that succeeds needs no state. `safe` has the names of the commands for
    which the user vouches, in upper case. `raised` are the bases of the library's errors, by which the `on` of the
    policy is checked.

    Raises TypeError for anything but a policy or None, and for a policy of an HTTP service. TypeError or ValueError for
    wrong names, and for names without a policy.
    """

    __slots__ = ("is_plain", "limit", "policy", "safe", "tables")

    def __init__(
        self, policy: Policy | None, safe: str | Iterable[str] = (), raised: tuple[type[Exception], ...] = ()
    ) -> None:
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy or None (send everything once), got {policy!r}")
        if policy is not None and policy.service is not None:
            raise TypeError(
                "`policy` must not be the policy of an HTTP service; "
                "take forbear.services.redis.policy, or one of forbear.retry(on=...)"
            )
        if policy is not None:
            refuse_for_clients(policy, _VOUCH)
            refuse_unraised(policy, (*raised, AttemptTimeout) if raised and policy.attempt_timeout else raised)
        self.policy = policy
        self.safe = safe_commands(safe)
        if self.safe and policy is None:
            raise ValueError(f"`safe` must be left out with policy=None, which sends everything once; got {safe!r}")
        self.tables = policy is not None and policy.on is verdict_of_exception
        self.limit = first_limit(policy)
        self.is_plain = policy is None or not (
            policy.budget is not None or policy.checks_values or self.limit is not None
        )

    def show(self) -> str:
        """Return the keywords of a client that make these settings, "" for the recommended ones."""
        shown = [] if self.policy == RECOMMENDED else [f"policy={self.policy!r}"]
        if self.safe:
            shown.append(f"safe={sorted(self.safe)!r}")
        return ", ".join(shown)

    def copy_for(self, address: str) -> "RedisSettings":
        """Return the settings of a client for the server or cluster at `address`; of a budget per host its own one."""
        policy = self.policy
        if policy is None or not isinstance(policy.budget, HostBudgets):
            return self
        return RedisSettings(policy.with_budget(policy.budget.of(address, "redis")), self.safe)


def with_keywords(policy: Policy | None, options: MutableMapping[str, Any]) -> Policy | None:
    """Return `policy` with the changes among the `options` of a client, which are then removed from them.

    Raises ValueError for changes of None.
    """
    changes: dict[str, Any] = {name: options.pop(name) for name in KEYWORDS_OF_CLIENTS if name in options}
    if not changes or (policy is not None and not isinstance(policy, Policy)):
        return policy
    if policy is None:
        raise ValueError(f"`{next(iter(changes))}` must be left out with policy=None, which sends everything once")
    return policy.with_changes(**changes)


def address_of(options: Mapping[str, object]) -> str:
    """Return the address of a server by the options of its connections or of its client: "localhost:6379", or a path.

    Of a cluster it is its first startup node, and behind a Sentinel the name of the service.
    """
    for name in ("service_name", "path", "unix_socket_path", "url"):
        if isinstance(named := options.get(name), str):
            return named.partition("?")[0].rpartition("@")[2].rpartition("//")[2]
    nodes: Any = options.get("startup_nodes")
    if nodes and not options.get("host"):
        return f"{nodes[0].host}:{nodes[0].port}"
    return f"{options.get('host') or 'localhost'}:{options.get('port') or 6379}"


ONCE = RedisSettings(None)


def refuse_retries(options: Mapping[str, object]) -> None:
    """Raise TypeError if `options` turn on one of the library's own retries: they repeat any command."""
    for name in _RETRIES:
        if options.get(name):
            raise TypeError(
                f"`{name}` must not be given, because the client's own retries repeat any command; use policy=, got "
                f"{options[name]!r}"
            )


def refuse_later_retries(retry: object) -> None:
    """Raise ValueError if `retry`, which a client, pool or connection got after our constructor, repeats anything."""
    count: object = getattr(retry, "_retries", 0)
    if count:
        raise ValueError(
            "`retry` must not repeat anything, because the client's own retries repeat any command; use policy=, and "
            f"set retry to Retry(NoBackoff(), 0), got {count!r} retries"
        )


def check_pool(options: Mapping[str, object], limit: float | None) -> None:
    """Raise ValueError for a connection pool that retries by itself, or whose sockets may wait over `limit` seconds.

    `options` are those of the pool's connections; sockets without a timeout wait too long. `limit` None allows any
    timeout.
    """
    retry: object = options.get("retry")
    if options.get("retry_on_error") or options.get("retry_on_timeout") or getattr(retry, "_retries", 0):
        raise ValueError(
            "`connection_pool` must not retry by itself, because that repeats any command; "
            "make it without retry, retry_on_error and retry_on_timeout"
        )
    if limit is not None:
        for name in ("socket_timeout", "socket_connect_timeout"):
            seconds = options.get(name, options.get("socket_timeout"))
            if not isinstance(seconds, int | float) or seconds > limit:
                raise ValueError(
                    f"`connection_pool` must have a {name} of at most the policy's attempt_timeout of {limit:g} s, "
                    f"got {seconds!r}; make it with {name}={limit:g}"
                )


def limit_sockets(options: dict[str, object], limit: float | None) -> None:
    """Set the sockets' timeouts in `options` to `limit` seconds if longer or missing; None changes nothing."""
    if limit is not None:
        for name in ("socket_timeout", "socket_connect_timeout"):
            own = options.get(name)
            options[name] = min(own if isinstance(own, int | float) else INFINITY, limit)
