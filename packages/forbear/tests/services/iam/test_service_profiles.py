"""The profiles of IAM, held field by field against the figures of its retry page."""

import pickle

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT
from forbear.policy import Policy
from forbear.services import iam
from forbear.services.errors import ErrorVerdicts
from forbear.services.iam import service
from forbear.services.iam.service import DOCUMENTED, RECOMMENDED, Iam

ALMOST_1 = 1 - 2**-53


def test_documented_is_the_retry_page() -> None:
    """The retry page of IAM, in its Portuguese edition.

    "min((2n + random-fraction), maximum-backoff), com n a partir de 0", "menor ou igual a 1", "32 ou 64 ... segundos",
    "deadline como 300 segundos", "códigos de erro 500, 502, 503 ou 504".
    """
    policy = iam.documented
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=64, jitter="documented", spread=1)
    assert policy.limits == Limits(attempts=None, timeout=300)
    assert policy.service == DOCUMENTED == Iam(documented=True, statuses=frozenset({500, 502, 503, 504}))
    assert not DOCUMENTED.retry_not_found  # "Como opção ... 404"


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), ConnectionRefusedError()], ids=repr)
def test_documented_departs_from_the_page_in_transport_errors(error: Exception) -> None:
    """The page lists none, and the docstring says so; nothing is repeated for one whose operation nobody knows."""
    assert ErrorVerdicts(DOCUMENTED)(error) == TRANSIENT
    assert not iam.documented.repeats_calls
    assert "lists no transport errors" in (service.documented.__doc__ or "")


def test_how_policy_differs() -> None:
    """Other jitter, and 408 and 429; each with its reason in the docstring."""
    policy = iam.policy
    waits = [(policy.backoff.delay(n, 0.0, None), policy.backoff.delay(n, ALMOST_1, None)) for n in (0, 1, 5, 6)]
    assert waits == [pytest.approx(wait) for wait in [(1, 2), (2, 4), (32, 64), (32, 64)]]
    assert policy.limits == iam.documented.limits
    assert policy.service == RECOMMENDED
    assert RECOMMENDED.statuses - DOCUMENTED.statuses == {408, 429}
    assert DOCUMENTED.statuses < RECOMMENDED.statuses
    for word in ("jitter", "429", "408"):
        assert word in (service.policy.__doc__ or "")


@pytest.mark.parametrize("policy", [iam.policy, iam.documented])
def test_what_they_share(policy: Policy) -> None:
    """Errors are judged by their shape, and nothing is repeated whose operation nobody knows."""
    assert policy.service is not None
    assert policy.on == ErrorVerdicts(policy.service)
    assert policy.repeatable is None
    assert not policy.repeats_calls
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_they_are_made_once() -> None:
    """The same object every time, so that identity can be relied on."""
    assert iam.policy is iam.policy
    assert iam.documented is iam.documented
