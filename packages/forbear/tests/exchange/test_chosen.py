"""The choices of users for an adapter: limits that keep all tables, and policies whose `on` can match."""

from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import httpx
import pytest
import redis
import redis.exceptions
import requests.exceptions
import valkey.exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

import forbear
from forbear.clients import aiohttp, google, httpx2, urllib3
from forbear.clients import httpx as httpx_client
from forbear.clients import redis as redis_clients
from forbear.clients import requests as requests_client
from forbear.clients import valkey as valkey_clients
from forbear.clients.google_storage import install
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.exchange.chosen import KEYWORDS_OF_CLIENTS, NO_CHANGES, PolicyChanges
from forbear.exchange.grpc import Rpc
from forbear.exchange.http.options import HttpOptions
from forbear.services import cloud_storage, iam, rfc9110

RPC = "google.iam.admin.v1.IAM/GetRole"


def _storage(policy: Any = None, **options: Any) -> object:
    credentials: Any = AnonymousCredentials
    return install(storage.Client("p", credentials()), policy, **options)


def _redis(kind: Any, policy: Any = None, **options: Any) -> object:
    return kind(**{"host": "localhost", **({} if policy is None else {"policy": policy}), **options})


ADAPTERS: dict[str, Callable[..., object]] = {
    "httpx": httpx_client.RetryTransport,
    "httpx, async": httpx_client.AsyncRetryTransport,
    "httpx2": httpx2.RetryTransport,
    "requests": requests_client.RetryAdapter,
    "aiohttp": aiohttp.RetryMiddleware,
    "urllib3": urllib3.Retry,
    "google-cloud-storage": _storage,
    "gRPC": RetryInterceptor,
    "gRPC, async": aio_interceptors,
    "retry objects": partial(google.retry_for, RPC),
    "retry objects, async": partial(google.async_retry_for, RPC),
    "redis": partial(_redis, redis_clients.Redis),
    "redis, async": partial(_redis, redis_clients.AsyncRedis),
    "redis cluster, async": partial(_redis, redis_clients.AsyncRedisCluster),
    "valkey": partial(_redis, valkey_clients.Valkey),
    "valkey, async": partial(_redis, valkey_clients.AsyncValkey),
}
RAISED: dict[str, tuple[type[Exception], ...]] = {
    "aiohttp": (OSError,),
    "google-cloud-storage": (OSError, requests.exceptions.ConnectionError),
    "retry objects": (OSError,),
    "retry objects, async": (OSError,),
    "requests": (OSError, requests.exceptions.RequestException),
    "gRPC": (grpc.RpcError,),
    "redis": (redis.exceptions.TimeoutError, redis.exceptions.RedisError),
    "valkey": (valkey.exceptions.ConnectionError,),
}
"""Errors that clients raise; of the others OSError is none."""

EACH = pytest.mark.parametrize("name", ADAPTERS)


@EACH
def test_every_adapter_takes_limits(name: str) -> None:
    """Alone, and on top of a policy."""
    assert ADAPTERS[name](attempts=3, timeout=30)
    assert ADAPTERS[name](forbear.retry(forbear.transient), attempts=3, name="orders")


@EACH
def test_every_adapter_refuses_wrong_limits(name: str) -> None:
    """By the same rules as `forbear.retry`."""
    with pytest.raises(ValueError, match="`attempts` must be"):
        ADAPTERS[name](attempts=0)


@pytest.mark.parametrize("name", [name for name in ADAPTERS if "redis" not in name and "valkey" not in name])
def test_every_adapter_refuses_other_keywords(name: str) -> None:
    """The libraries' own names are translated; `on` is not for tables, and `on_give_up` is for functions."""
    for wrong, cure in (
        ({"max_retries": 3}, "write `attempts`, which counts the first call, too"),
        ({"on": OSError}, "takes no `on`, because the tables decide"),
        ({"on_give_up": None}, "did you mean `on_event`?|takes no `on_give_up`"),
    ):
        with pytest.raises(TypeError, match=cure):
            ADAPTERS[name](**wrong)


@EACH
def test_a_policy_that_matches_nothing_is_refused(name: str) -> None:
    """Its errors would be raised at once, without a word."""
    for kind in (KeyError, *(() if OSError in RAISED.get(name, ()) else (OSError,))):
        with pytest.raises(TypeError, match=f"none that it raises here is of the type {kind.__name__}: leave `on` out"):
            ADAPTERS[name](forbear.retry(kind))


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in RAISED.items() for kind in kinds])
def test_a_policy_that_matches_something_is_not(name: str, kind: type[Exception]) -> None:
    """A base class, or a subclass, of what the library raises; and one of several types is enough."""
    assert ADAPTERS[name](forbear.retry(kind))
    assert ADAPTERS[name](forbear.retry(kind, KeyError))
    assert ADAPTERS[name](forbear.retry(KeyError) | forbear.retry(kind))


@pytest.mark.parametrize("name", ADAPTERS)
def test_any_function_may_judge(name: str) -> None:
    """A function of the user may accept any error, so it is not refused."""
    assert ADAPTERS[name](forbear.retry(on=lambda error: isinstance(error, KeyError)))


def test_errors_of_a_status_are_raised_elsewhere() -> None:
    """The adapters of httpx and requests see responses, never the errors of `raise_for_status`."""
    for name, kind in (("httpx", httpx.HTTPStatusError), ("requests", requests.HTTPError)):
        with pytest.raises(TypeError, match="is of the type HTTP"):
            ADAPTERS[name](forbear.retry(kind))


def test_a_transport_of_the_users_own_may_raise_anything() -> None:
    """So its types are not checked."""

    class Own(httpx.BaseTransport):
        """Raises KeyError, say."""

    httpx_client.RetryTransport(forbear.retry(KeyError), transport=Own())


def _localhost() -> tuple[str, str, int]:
    return "http", "localhost", 80


@pytest.mark.parametrize(
    ("host", "path", "recommended"),
    [
        ("storage.googleapis.com", "/storage/v1/b", cloud_storage.policy),
        ("iam.googleapis.com", "/v1/projects/p/roles", iam.policy),
        ("api.example.com", "/", rfc9110.policy),
    ],
)
def test_changed_limits_keep_the_table(host: str, path: str, recommended: forbear.Policy) -> None:
    """Each service has its recommended policy, with the changes; the same one for every request."""
    options = HttpOptions(changes=PolicyChanges({"attempts": 3}))
    policy, service = options.resolve(host, path, _localhost)
    assert (policy, service) == (recommended.with_attempts(3), HttpOptions().resolve(host, path, _localhost)[1])
    assert options.resolve(host, path, _localhost)[0] is policy
    assert HttpOptions(changes=NO_CHANGES).resolve(host, path, _localhost)[0] is recommended


def test_rpcs_get_the_changes() -> None:
    """On top of the policy of their service."""
    assert Rpc(RPC, changes=PolicyChanges({"attempts": 3})).policy == iam.policy.with_attempts(3)


def test_one_limit_is_one_limit() -> None:
    """For hosts that nobody knows, `attempts` lifts the default timeout."""
    assert HttpOptions(changes=PolicyChanges({"attempts": 9})).sample.limits == forbear.Limits(attempts=9)


def test_redis_gets_the_changes() -> None:
    """Its recommended policy, however the client is made."""
    pool = redis.ConnectionPool()
    kind: Any = redis_clients.Redis
    for client in (kind(attempts=3), kind.from_url("redis://localhost", attempts=3), kind.from_pool(pool, attempts=3)):
        assert client.settings.policy.limits.attempts == 3


def test_redis_without_a_policy_takes_no_limits() -> None:
    """Then every command is sent once."""
    kind: Any = redis_clients.Redis
    with pytest.raises(ValueError, match="`attempts` must be left out with policy=None"):
        kind(policy=None, attempts=3)
    with pytest.raises(TypeError, match="`from_pool` takes no `max_tries`: write `attempts`"):
        kind.from_pool(redis.ConnectionPool(), max_tries=3)


def test_the_keywords_are_those_of_forbear_retry() -> None:
    """Without what only functions have."""
    assert {"attempts", "timeout", "backoff", "budget", "on_event"} <= set(KEYWORDS_OF_CLIENTS)
    assert not {"on", "on_give_up", "raise_unsatisfied", "on_success", "service"} & set(KEYWORDS_OF_CLIENTS)
