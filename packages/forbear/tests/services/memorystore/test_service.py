"""Memorystore by hand: two APIs with the same paths, told apart by the host."""

import pickle

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import memorystore
from forbear.services.memorystore.service import DOCUMENTED, RECOMMENDED, Memorystore
from forbear_testkit.services.json_tables import UUID, ZERO

INSTANCE = "/v1/projects/p/locations/europe-west1/instances/i"
UNKNOWN = Judgement("memorystore", None, Safety.NEVER)


def judge(line: str, host: str) -> Judgement:
    """The judgement on a request with the given request line."""
    method, _, target = line.partition(" ")
    return RECOMMENDED.classify(Request(method, host, target))


@pytest.mark.parametrize(
    ("line", "redis", "valkey", "emulator"),
    [
        (f"GET {INSTANCE}", True, True, True),
        (f"DELETE {INSTANCE}", False, False, False),
        (f"DELETE {INSTANCE}?requestId={UUID}", False, True, False),
        (f"DELETE {INSTANCE}?requestId={ZERO}", False, False, False),
        (f"DELETE {INSTANCE}?x=1#&requestId={UUID}", False, False, False),
        (f"PATCH {INSTANCE}?requestId={UUID}", False, True, False),
        (f"POST {INSTANCE}:failover", False, False, False),
        (f"GET {INSTANCE}/authString", True, True, True),
        ("POST /v1/projects/p/locations/l/instances?instanceId=i", True, True, True),
    ],
)
def test_the_host_tells_the_apis_apart(line: str, redis: bool, valkey: bool, emulator: bool) -> None:
    """On a host that is none of Google's the stricter answer counts; for Redis it is that of the real host."""
    assert judge(line, "redis.googleapis.com").repeatable is redis
    assert judge(line, "memorystore.mtls.googleapis.com").repeatable is valkey
    assert judge(line, "127.0.0.1:8080").repeatable is emulator


def test_what_one_api_lacks_is_not_known_there() -> None:
    """Redis has failovers and Valkey migrations."""
    assert judge(f"POST {INSTANCE}:failover", "memorystore.googleapis.com") == UNKNOWN
    assert judge(f"POST {INSTANCE}:startMigration", "redis.googleapis.com") == UNKNOWN
    assert judge(f"DELETE {INSTANCE}", "storage.googleapis.com") == UNKNOWN


@pytest.mark.parametrize(
    ("status", "recommended", "documented"),
    [
        (200, None, None), (404, PERMANENT, PERMANENT), (408, TRANSIENT, PERMANENT), (409, PERMANENT, PERMANENT),
        (429, Verdict(Kind.TRANSIENT, throttled=True), Verdict(Kind.TRANSIENT, throttled=True)),
        (500, TRANSIENT, TRANSIENT), (501, PERMANENT, TRANSIENT), (505, PERMANENT, TRANSIENT),
    ],
)  # fmt: skip
def test_statuses_have_their_verdict(status: int, recommended: Verdict | None, documented: Verdict | None) -> None:
    """The page lists 429 and every 5xx."""
    assert RECOMMENDED.verdict(UNKNOWN, status, {}) == recommended
    assert DOCUMENTED.verdict(UNKNOWN, status, {}) == documented


def test_calls() -> None:
    """A shared RPC of long-running operations is known too, and an unknown one never repeated."""
    assert RECOMMENDED.classify_call(GrpcCall("/google.longrunning.Operations/GetOperation")).repeatable
    assert RECOMMENDED.classify_call(GrpcCall("/google.longrunning.Operations/WaitOperation")) == UNKNOWN
    assert RECOMMENDED.call_verdict(UNKNOWN, 10) is CONFLICT
    assert RECOMMENDED.call_verdict(UNKNOWN, 13) == TRANSIENT


def test_services_can_be_compared_and_pickled() -> None:
    """Services with the same settings are equal, in any process."""
    assert pickle.loads(pickle.dumps(DOCUMENTED)) == DOCUMENTED != RECOMMENDED == Memorystore()
    assert (RECOMMENDED.name, RECOMMENDED.token_header) == ("memorystore", None)
    assert memorystore.Memorystore is Memorystore
    with pytest.raises(AttributeError, match="has no attribute 'polciy'"):
        memorystore.polciy  # type: ignore[attr-defined]  # noqa: B018
