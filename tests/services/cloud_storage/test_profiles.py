"""The two profiles: the waits, the limits and the service of each."""

import pickle
import subprocess
import sys

import pytest

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services import cloud_storage
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED

ALMOST_1 = 1 - 2**-53


@pytest.mark.parametrize(
    ("policy", "service"), [(cloud_storage.policy, RECOMMENDED), (cloud_storage.documented, DOCUMENTED)]
)  # fmt: skip
def test_what_they_share(policy: Policy, service: object) -> None:
    """Ten minutes, no limit on attempts, the transport errors of the page."""
    assert policy.limits == Limits(attempts=None, timeout=600)
    assert policy.on == (ConnectionError, TimeoutError)
    assert policy.service == service
    assert policy.attempt_timeout is None
    assert policy.budget is None
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_documented_waits_to_the_letter() -> None:
    """1 to 2, 2 to 3, 4 to 5 … and 64 s without any jitter."""
    backoff = cloud_storage.documented.backoff
    assert backoff == Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
    waits = [(backoff.delay(n, 0.0), backoff.delay(n, ALMOST_1)) for n in range(9)]
    assert waits == [
        pytest.approx(wait)
        for wait in [(1, 2), (2, 3), (4, 5), (8, 9), (16, 17), (32, 33), (64, 64), (64, 64), (64, 64)]
    ]


def test_policy_waits_with_jitter_that_grows() -> None:
    """Retry n waits 2**n to 2**(n+1), never less than documented below the cap, and 32 to 64 s at it."""
    backoff = cloud_storage.policy.backoff
    waits = [(backoff.delay(n, 0.0), backoff.delay(n, ALMOST_1)) for n in range(9)]
    assert waits == [
        pytest.approx(wait)
        for wait in [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (32, 64), (32, 64), (32, 64)]
    ]


def test_they_are_made_once() -> None:
    """The same object every time, so that identity can be relied on."""
    assert cloud_storage.policy is cloud_storage.policy
    assert cloud_storage.documented is cloud_storage.documented


def test_every_difference_has_its_reason_in_the_docstring() -> None:
    """Who reads the docstring of `policy` knows what departs from the page."""
    from forbear.services.cloud_storage import profiles

    text = profiles.policy.__doc__ or ""
    for word in ("jitter", "501", "429", "start of a resumable session", "If-Match", "does not name"):
        assert word in text


def test_no_table_is_loaded_before_a_request_is_seen() -> None:
    """Finding a service costs a look at the host; reading its table waits for the first request."""
    code = """
import sys
from forbear.services import find
assert find("example.com", "/") is None
assert "forbear.services.cloud_storage.service" not in sys.modules
assert find("storage.googleapis.com", "/") is not None
assert sys.modules["forbear.services.cloud_storage.service"].operations.cache_info().currsize == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
