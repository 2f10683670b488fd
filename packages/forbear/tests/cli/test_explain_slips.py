"""`forbear explain` names what was meant by a slip, and what it knows of an RPC agrees with its answer."""

from typing import Any

import pytest

import forbear
from forbear_testkit.cli.running import Invoke

COMPUTE = "https://compute.googleapis.com/compute/v1/projects/p/zones/z/instances"
TOPICS = "https://pubsub.googleapis.com/v1/projects/p/subscriptions"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("GTE", "https://api.example.com/x"), "GTE is no HTTP method", "write GET"),
        (("redis", "INCRR", "a"), "INCRR is no known command of Redis", "is it INCR?"),
        (("aws", "s3.PutObjekt"), "no such operation of s3: PutObjekt", "is it PutObject"),
    ],
)
def test_a_slip(invoke: Invoke, words: tuple[str, ...], error: str, hint: str) -> None:
    """It is an error with a hint, and no answer."""
    result = invoke("explain", *words)
    assert result.exit_code == 2
    assert error in result.stderr
    assert hint in result.stderr


def test_a_call_of_aws_as_safe_has_it(invoke: Invoke) -> None:
    """One word with a dot is a service and an operation, and a module of Redis may have any command."""
    assert invoke("explain", "aws", "s3.PutObject").stdout == invoke("explain", "aws", "s3", "PutObject").stdout
    assert "MYMODULE.RUN" in invoke("explain", "redis", "MYMODULE.RUN", "key").stdout


@pytest.mark.parametrize(
    ("url", "rpc"),
    [
        (COMPUTE, "google.cloud.compute.v1.Instances/Insert: only with request_id, "),
        (TOPICS, "google.pubsub.v1.Subscriber/CreateSubscription: only with name, "),
    ],
)
def test_a_post_that_creates_is_judged_by_its_rpc(invoke: Invoke, url: str, rpc: str) -> None:
    """The source names the condition that is not met, and nobody says that the host is not known."""
    result = invoke("explain", "POST", url)
    answer = forbear.explain(f"POST {url}")
    assert not answer.repeatable
    assert str(answer.source).startswith(f"as {rpc}")
    assert "the host is not known" not in result.stderr


@pytest.mark.parametrize("option", ["total", "retries", "max_retries"])
def test_the_hint_for_a_number_of_retries(option: str) -> None:
    """The first call counts, too."""
    retry: Any = forbear.retry
    with pytest.raises(TypeError, match="write `attempts`, which counts the first call, too: add 1"):
        retry(OSError, **{option: 3})
