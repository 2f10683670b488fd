"""A word of the user that matches nothing is refused where that can be known, and named when a run stops."""

from importlib import import_module

import httpx
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor
from forbear.judges.data_facts import STATEMENTS, check_name
from forbear.services.redis.service import commands
from forbear.testing import virtual_time

for _each in ("botocore.loaders", "google.iam.v1.iam_policy_pb2"):
    import_module(_each)  # the definitions there are then known


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("INCRR", "got 'INCRR', is it \"INCR\"?"),
        ("CONFIG", "must name a subcommand"),
        ("dynamodb.UpdateItm", 'did you mean "dynamodb.UpdateItem"?'),
        ("s3.PutObjekt", 'did you mean "s3.PutObject"?'),
        ("s3.NothingLikeIt", "must hold names of operations of s3, got 's3.NothingLikeIt'"),
        ("/google.iam.v1.IAMPolicy/SetIamPolicie", "no method 'SetIamPolicie'; did you mean \"SetIamPolicy\"?"),
        ("google.iam.v1.IAMPolicy/Sing", "google.iam.v1.IAMPolicy has no method 'Sing'"),
        ("POTS https://api.example.com/orders", "did you mean POST?"),
        ("GTE https://api.example.com/orders", "did you mean GET?"),
    ],
)
def test_a_name_that_its_service_does_not_have(name: str, text: str) -> None:
    """The error comes when the policy is made, with the name that was meant, if there is one."""
    with pytest.raises(ValueError, match="`safe` must ") as raised:
        forbear.retry(OSError, safe=["INCR", name])
    assert text in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "incr", "CLIENT KILL", "MYMODULE.RUN", "RUN", "COMMIT", "insert", "sqs.SendMessage", "kafka.Produce",
        "smtp.sendmail", "pymongo.insert_one", "nosuch.Operation", "/google.iam.v1.IAMPolicy/SetIamPolicy",
        "google.iam.v1.IAMPolicy/*", "/nosuch.Service/Method",
    ],
)  # fmt: skip
def test_names_that_may_be_right(name: str) -> None:
    """Modules of Redis have commands of their own, and services may not be loaded."""
    assert forbear.retry(OSError, safe=name).safe == (name,)
    check_name(name)


def test_statements_are_no_slips() -> None:
    """A statement of SQL passes, although it looks like a command of Redis; each command of one word passes, too."""
    for name in STATEMENTS | {row.command for row in commands() if row.command in STATEMENTS}:
        check_name(name)


def test_adapters_check_names_alike() -> None:
    """Those of RPCs, of HTTP, and an Api."""
    with pytest.raises(ValueError, match="has no method 'SetIamPolicie'"):
        RetryInterceptor(safe="/google.iam.v1.IAMPolicy/SetIamPolicie")
    with pytest.raises(ValueError, match="did you mean POST"):
        forbear.install(httpx.Client(), safe="POTS https://api.example.com/orders")
    with pytest.raises(ValueError, match="did you mean POST"):
        forbear.Api("https://api.example.com", safe="POTS /orders")
    with pytest.raises(ValueError, match="did you mean POST"):
        forbear.safe_to_repeat("POTS https://api.example.com/orders")


def lose(request: httpx.Request) -> httpx.Response:
    """Lose the response."""
    raise httpx.ReadError("reset", request=request)


def create(_: httpx.Request) -> httpx.Response:
    """Answer that it was created."""
    return httpx.Response(201)


SAFE = ("HINCRBY", "POST https://api.example.com/orders/*")
UNMATCHED = '(safe="HINCRBY", "POST https://api.example.com/orders/*" does not match it)'


@pytest.mark.parametrize("installed", [False, True])
def test_a_stopped_run_names_the_words_that_do_not_match(installed: bool) -> None:
    """The note has them, by what the error shows and by what an adapter has sent."""

    @forbear.retry(httpx.TransportError, safe=SAFE)
    def send() -> None:
        answer = create if installed else lose
        with httpx.Client(transport=httpx.MockTransport(answer)) as client:
            if installed:
                forbear.install(client)
            client.post("https://api.example.com/orders")
        raise httpx.ConnectTimeout("of another request")

    with virtual_time(), pytest.raises(httpx.TransportError) as caught:
        send()
    (note, *_) = caught.value.__notes__
    assert UNMATCHED in note
    assert "say so: safe=" in note.partition(UNMATCHED)[2]


def test_a_pattern_that_matches_what_cannot_be_vouched_for() -> None:
    """It is not called unmatched: what is refused stays refused."""

    @forbear.retry(httpx.TransportError, safe=("INCR", "POST https://storage.googleapis.com/batch/storage/v1"))
    def send() -> None:
        with httpx.Client(transport=httpx.MockTransport(lose)) as client:
            client.post("https://storage.googleapis.com/batch/storage/v1", content=b"--x")

    with virtual_time(), pytest.raises(httpx.TransportError) as caught:
        send()
    assert '(safe="INCR" does not match it)' in caught.value.__notes__[0]
