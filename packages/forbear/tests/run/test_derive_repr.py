"""Policies and adapters show themselves as the call that makes them."""

import pytest

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter

POLICY = forbear.retry(OSError, attempts=3)


@pytest.mark.unmutated
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (POLICY, "retry(OSError, attempts=3)"),
        (forbear.retry(OSError, KeyError, timeout=5), "retry(OSError, KeyError, timeout=5)"),
        (forbear.retry(KeyError, forbear.transient), "retry(KeyError, forbear.transient)"),
        (forbear.retry(on=forbear.transient.transaction), "retry(forbear.transient.transaction)"),
        (forbear.retry(OSError, attempts=None), "retry(OSError, attempts=None)"),
        (
            forbear.retry(OSError, backoff=forbear.Constant(1), name="load", on_give_up=None),
            "retry(OSError, backoff=Constant(seconds=1.0), name='load', on_give_up=None)",
        ),
        (POLICY | forbear.retry(KeyError), "retry(OSError, attempts=3) | retry(KeyError)"),
        (RetryAdapter(), "RetryAdapter()"),
        (RetryTransport(attempts=3), "RetryTransport(attempts=3)"),
        (
            RetryMiddleware(forbear.retry(forbear.transient), safe="POST https://a.example/search"),
            "RetryMiddleware(retry(forbear.transient), safe=('POST https://a.example/search',))",
        ),
    ],
)
def test_a_repr_reads_like_the_call(value: object, text: str) -> None:
    """It has only what differs from the defaults."""
    assert repr(value) == text
