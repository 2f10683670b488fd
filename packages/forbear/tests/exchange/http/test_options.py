"""Settings: which policy and service apply to a request, and what identifies a mutation."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import forbear
from forbear.exchange.grpc import check_rpc_policy
from forbear.exchange.http.options import HttpOptions, new_token
from forbear.http.vouch import Vouch
from forbear.services import cloud_storage, redis, rfc9110
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED
from forbear.services.rfc9110 import RFC9110

GENERIC = forbear.retry(on=OSError)


@pytest.mark.parametrize(
    ("policy", "host", "expected"),
    [
        (None, "storage.googleapis.com", (cloud_storage.policy, RECOMMENDED)),
        (None, "example.com", (rfc9110.policy, RFC9110)),
        (cloud_storage.documented, "127.0.0.1", (cloud_storage.documented, DOCUMENTED)),
        (rfc9110.policy, "storage.googleapis.com", (rfc9110.policy, RFC9110)),
        (GENERIC, "storage.googleapis.com", (GENERIC, RECOMMENDED)),
        (GENERIC, "example.com", (GENERIC, RFC9110)),
    ],
)
def test_a_named_service_goes_before_that_of_the_host(
    policy: forbear.Policy | None, host: str, expected: tuple[object, object]
) -> None:
    """No policy takes the recommended one, one with a service holds everywhere, any other keeps the host's table."""
    assert HttpOptions(policy).resolve(host, "/storage/v1/b", refuse) == expected


def refuse() -> tuple[str, str, int]:
    """Fail, since nothing depends on the origin."""
    pytest.fail("the origin was asked for")


def test_an_api_may_name_a_service() -> None:
    """Its table and its policy then judge the requests to this origin, and to no other."""
    settings = HttpOptions(vouch=Vouch(apis=forbear.Api("http://emulator:9000", service="cloud_storage")))
    here, elsewhere = ("http", "emulator", 9000), ("http", "emulator", 9001)
    assert settings.resolve("emulator:9000", "/b", lambda: here) == (cloud_storage.policy, RECOMMENDED)
    assert settings.resolve("emulator:9001", "/b", lambda: elsewhere) == (rfc9110.policy, RFC9110)


def _same(origin: tuple[str, str, int]) -> tuple[str, str, int]:
    return origin


def test_a_known_service_has_its_own_header() -> None:
    """A key counts only at its origin, and not where a service is known that has a header of its own."""
    key = forbear.IdempotencyKey("Idempotency-Key", add=True)
    settings = HttpOptions(vouch=Vouch(apis=forbear.Api("https://example.com", key=key)))
    origins = ("https", "example.com", 443), ("http", "example.com", 80), ("https", "example.org", 443)
    assert [settings.key_for(RFC9110, partial(_same, origin)) for origin in origins] == [key, None, None]
    assert settings.key_for(RECOMMENDED, lambda: origins[0]) is None
    assert HttpOptions().key_for(RFC9110, lambda: origins[0]) is None


@pytest.mark.parametrize(
    ("policy", "plain"),
    [
        (None, True),
        (GENERIC, True),
        (GENERIC.with_attempt_timeout(3), False),
        (GENERIC.with_budget(forbear.budgets.Budget()), False),
        (GENERIC.with_on_result(lambda value: False), False),
    ],
)
def test_only_some_policies_have_a_part_in_success(policy: forbear.Policy | None, plain: bool) -> None:
    """A budget counts successes, `on_result` judges them, an attempt timeout bounds them; nothing else does."""
    assert HttpOptions(policy).is_plain is plain


def test_hosts_that_nobody_knows_may_be_of_one_service() -> None:
    """Known ones keep theirs."""
    settings = HttpOptions(GENERIC, service=RECOMMENDED)
    assert settings.resolve("example.com", "/", refuse) == (GENERIC, RECOMMENDED)
    assert settings.resolve("iam.googleapis.com", "/v1/roles", refuse)[1].name == "iam"


@pytest.mark.parametrize("take", [HttpOptions, check_rpc_policy])
def test_the_policy_for_redis_is_refused(take: Callable[[Any], object]) -> None:
    """To it, whatever goes wrong elsewhere is permanent, so that nothing would ever be repeated."""
    with pytest.raises(
        TypeError, match=r"`policy` must not be the policy of Redis.*take the policy of the service you call"
    ):
        take(redis.policy.with_attempts(3))


def test_tokens_differ() -> None:
    """Every mutation has its own."""
    assert new_token() != new_token()
