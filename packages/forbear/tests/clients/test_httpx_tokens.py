"""The idempotency token: one for each logical mutation, on all its attempts, and what it makes repeatable."""

import pytest

from forbear import Api, IdempotencyKey
from forbear.events import Reason
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.wire import Answer, Wire, reply

TOKEN = "x-goog-gcs-idempotency-token"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=new&ifGenerationMatch=0"

KEY = IdempotencyKey("Idempotency-Key", add=True)


def test_all_attempts_carry_the_same_token(flavour: Flavour, cloud: Cloud) -> None:
    """One mutation, one token, whatever became of its attempts."""
    cloud.fault(Fault.status(503), Fault.reset())
    assert flavour.call(flavour.transport(cloud_storage.policy), "POST", cloud.url + UPLOAD, content=b"x").status == 200
    tokens = {request.headers[TOKEN] for request in cloud.requests}
    assert (len(cloud.requests), len(tokens)) == (3, 1)


def test_two_sends_are_two_mutations(flavour: Flavour, cloud: Cloud) -> None:
    """The same request object sent twice is meant twice."""
    transport = flavour.transport(cloud_storage.policy)
    assert flavour.call(transport, "POST", cloud.url + UPLOAD, content=b"x", times=2).status == 412
    first, second = (request.headers[TOKEN] for request in cloud.requests)
    assert first != second


def test_reads_carry_none(flavour: Flavour, cloud: Cloud) -> None:
    """A read changes nothing, so nothing of it could be doubled."""
    cloud.fault(Fault.status(503))
    flavour.call(flavour.transport(cloud_storage.policy), "GET", cloud.url + "/storage/v1/b/bkt")
    assert [TOKEN in request.headers for request in cloud.requests] == [False, False]


def test_a_token_of_the_users_own_is_kept(flavour: Flavour, cloud: Cloud) -> None:
    """Who sends a token means it."""
    cloud.fault(Fault.status(503))
    headers = {TOKEN: "mine"}
    flavour.call(flavour.transport(cloud_storage.policy), "POST", cloud.url + UPLOAD, content=b"x", headers=headers)
    assert [request.headers[TOKEN] for request in cloud.requests] == ["mine", "mine"]


def test_a_host_that_nobody_knows_is_sent_none(flavour: Flavour) -> None:
    """Without a known or a named header there is no token."""
    with Wire(reply(200)) as wire:
        flavour.call(flavour.transport(), "POST", wire.url, content=b"x")
        (seen,) = wire.seen
        assert "token" not in seen.head.lower()


def test_a_named_header_makes_a_post_repeatable(flavour: Flavour) -> None:
    """If the API drops duplicates by a header, any operation may be repeated under its one token."""
    with Wire(reply(500), reply(200)) as wire:
        transport = flavour.transport(apis=Api(wire.url, key=KEY))
        assert flavour.call(transport, "POST", wire.url, content=b"x").status == 200
        first, second = (seen.header("idempotency-key") for seen in wire.seen)
        assert first == second is not None


@pytest.mark.parametrize(("own", "status"), [("mine", 200), ("", 500)])
def test_an_empty_key_protects_nobody(flavour: Flavour, own: str, status: int) -> None:
    """A key of the user's own counts, unless it is empty."""
    with Wire(reply(500), reply(200)) as wire:
        transport = flavour.transport(apis=Api(wire.url, key=KEY))
        result = flavour.call(transport, "POST", wire.url, content=b"x", headers={"Idempotency-Key": own})
        assert result.status == status
        assert {seen.header("idempotency-key") for seen in wire.seen} == {own}


def test_a_known_service_heeds_its_own_header_only(flavour: Flavour, cloud: Cloud) -> None:
    """A header named for other APIs makes nothing safe at a service that does not read it."""
    cloud.fault(Fault.reset(when="after"))
    transport = flavour.transport(cloud_storage.policy, apis=Api(cloud.url, key=KEY))
    url = cloud.url + UPLOAD.replace("&ifGenerationMatch=0", "")
    result = flavour.call(transport, "POST", url, content=b"x")
    assert result.report.reason is Reason.UNSAFE
    assert (len(cloud.requests), cloud.effects.count()) == (1, 1)
    assert "idempotency-key" not in cloud.requests[0].headers


def test_a_known_service_without_a_header_is_sent_none(flavour: Flavour) -> None:
    """IAM reads no such header, so a new key is made once, whatever was named for others."""
    with Wire(Answer(end="reset")) as wire:
        transport = flavour.transport(
            apis=Api(wire.url, key=KEY),
            transport=flavour.rerouted(wire.url),
        )
        url = "https://iam.googleapis.com/v1/projects/p/serviceAccounts/a/keys"
        result = flavour.call(transport, "POST", url, json={})
        assert [seen.header("idempotency-key") for seen in wire.seen] == [None]
    assert result.report.reason is Reason.UNSAFE


@pytest.mark.parametrize(
    ("query", "authorization"),
    [
        ("&X-Goog-Signature=abc", ""),
        ("&Signature=abc", "Bearer abc"),
        ("&X-Amz-Signature=abc", ""),
        ("", "GOOG4-HMAC-SHA256 Credential=abc"),
        ("", "GOOG1 abc:def"),
    ],
)
def test_a_signed_request_is_given_none(flavour: Flavour, cloud: Cloud, query: str, authorization: str) -> None:
    """A signature covers all headers of the service; one that was added would have the request refused."""
    cloud.fault(Fault.status(503))
    headers = {"Authorization": authorization} if authorization else {}
    transport = flavour.transport(cloud_storage.policy)
    result = flavour.call(transport, "POST", cloud.url + UPLOAD + query, content=b"x", headers=headers)
    assert result.status == 200
    assert [TOKEN in request.headers for request in cloud.requests] == [False, False]
    assert all(request.query.endswith(query) for request in cloud.requests)
