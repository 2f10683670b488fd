"""The profiles of Memorystore, held field by field against the figures of its page."""

import pickle

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT
from forbear.policy import Policy
from forbear.services import memorystore
from forbear.services.errors import ErrorVerdicts
from forbear.services.memorystore import service
from forbear.services.memorystore.service import DOCUMENTED, RECOMMENDED, Memorystore

ALMOST_1 = 1 - 2**-53


def test_documented_is_the_page() -> None:
    """The page on exponential backoff of Memorystore for Redis, in its Italian edition.

    "min((2^n)+random_number_milliseconds), maximum_backoff)", "minore o uguale a 1000", "32 o 64 secondi", "fino al
    numero massimo di nuovi tentativi" without a figure, "codici di risposta HTTP 5xx e 429".
    """
    policy = memorystore.documented
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=64, jitter="documented", spread=1)
    assert policy.limits == Limits(attempts=11, timeout=None)
    assert policy.service == DOCUMENTED == Memorystore(statuses=frozenset({429, *range(500, 600)}))
    assert 319 <= sum(policy.backoff.delay(n, 0.5, None) for n in range(10)) <= 325  # a little over five minutes
    assert "no figure" in " ".join((service.documented.__doc__ or "").split())


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), ConnectionRefusedError()], ids=repr)
def test_documented_departs_from_the_page_in_transport_errors(error: Exception) -> None:
    """The page lists none, and the docstring says so; nothing is repeated for one whose operation nobody knows."""
    assert ErrorVerdicts(DOCUMENTED)(error) == TRANSIENT
    assert not memorystore.documented.repeats_calls
    assert "lists no transport errors" in (service.documented.__doc__ or "")


def test_how_policy_differs() -> None:
    """Other jitter, a timeout, 408, and no rare 5xx; each with its reason in the docstring."""
    policy = memorystore.policy
    waits = [(policy.backoff.delay(n, 0.0, None), policy.backoff.delay(n, ALMOST_1, None)) for n in (0, 1, 5, 6)]
    assert waits == [pytest.approx(wait) for wait in [(1, 2), (2, 4), (32, 64), (32, 64)]]
    assert policy.limits == Limits(attempts=11, timeout=300)
    assert policy.service == RECOMMENDED
    assert RECOMMENDED.statuses == {408, 429, 500, 502, 503, 504}
    for word in ("jitter", "timeout", "501", "408"):
        assert word in (service.policy.__doc__ or "")


@pytest.mark.parametrize("policy", [memorystore.policy, memorystore.documented])
def test_what_they_share(policy: Policy) -> None:
    """Errors are judged by their shape, and nothing is repeated whose operation nobody knows."""
    assert policy.service is not None
    assert policy.on == ErrorVerdicts(policy.service)
    assert policy.repeatable is None
    assert not policy.repeats_calls
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_they_are_made_once() -> None:
    """The same object every time, so that identity can be relied on."""
    assert memorystore.policy is memorystore.policy
    assert memorystore.documented is memorystore.documented
