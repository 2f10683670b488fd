"""Writes that set a state: judged alike in all tables, and no row says two things at once."""

import threading
from itertools import chain

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.core.service import TableEntry
from forbear.core.verdict import Safety
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import iam, registry
from forbear.services.iam.service import DOCUMENTED, RECOMMENDED
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.rows import for_each

REQUESTS, COMMANDS = (
    [entry for name in names for entry in chain.from_iterable(registry.service(name).tables().values())]
    for names in (("cloud_storage", "iam", "resource_manager", "memorystore"), ("redis",))
)
HARMLESS = {
    "none",
    "one more session, which is forgotten after a week",
    "one more short-lived token or signature",
    "the same part again",
    "the same part again, or newer bytes where the source has changed",
}
"""The effects of a duplicate where no condition is needed: none that meets the write of another client."""

CHOICES = {
    "iam.projects.serviceAccounts.delete",
    "iam.locations.workforcePools.subjects.revokeSessions",
    "cloudresourcemanager.folders.delete",
    "cloudresourcemanager.folders.undelete",
    "cloudresourcemanager.projects.delete",
    "cloudresourcemanager.projects.undelete",
}
"""Repeated although a change that another client makes in between is lost: docs/tools.md, "Deletions", says why."""

ITS_CONNECTION = "state of the connection, lost with it"
ONE_EXECUTION = "once, but later"
"""The words of a Redis command's note if a repeat, with others in between, does what a later command does."""

OF_SAFE = ("cannot hit", "succeed once", "succeeds once", "never used again", "safe in effect")
OF_UNSAFE = ("no precondition", "absolute state", "in between", "undoes", "overwrites", "blindly", "makes it worse")
ACCOUNT = "/v1/projects/p/serviceAccounts/abcdefg@p.iam.gserviceaccount.com"
SWITCHES = [f"POST {ACCOUNT}{what}:{verb}" for what in ("", "/keys/k") for verb in ("enable", "disable")]


@for_each(REQUESTS + COMMANDS, "{0.id}")
def test_no_row_contradicts_itself(entry: TableEntry) -> None:
    """An operation that is always safe does no harm and says so; one that is never safe does, or loses its response."""
    if entry.safety is Safety.ALWAYS:
        assert (entry.effect in HARMLESS) is (entry.id not in CHOICES)
        if ONE_EXECUTION not in entry.note and not entry.note.startswith(ITS_CONNECTION):
            assert not any(words in entry.note for words in OF_UNSAFE)
    else:
        assert entry.effect != "none"
        assert entry.safety is Safety.CONDITIONAL or not any(
            words in entry.note for words in OF_SAFE if "lost response" not in entry.note
        )
    if "no precondition" in entry.note:
        assert entry.safety is Safety.NEVER


def test_redis_names_what_it_deletes() -> None:
    """No command has a condition as a request has, so deletions by name are safe, and those without a name are not."""
    safety = {entry.id: entry.safety for entry in COMMANDS}
    for command in ("DEL", "UNLINK", "HDEL", "SREM", "ZREM", "XDEL", "FUNCTION DELETE"):
        assert safety[command] is Safety.ALWAYS
    for command in ("FLUSHDB", "FLUSHALL", "FUNCTION FLUSH", "CLUSTER RESET", "RENAME", "RENAMENX", "MOVE", "GETDEL"):
        assert safety[command] is not Safety.ALWAYS


@pytest.mark.parametrize("line", [f"PUT {ACCOUNT}", *SWITCHES])
def test_what_sets_a_state_of_an_account(line: str) -> None:
    """There is no precondition, so `policy` stops; the page excepts no request, so `documented` goes on."""
    method, _, target = line.partition(" ")
    request = Request(method, "iam.googleapis.com", target, {}, b"{}")
    recommended, documented = (service.classify(request) for service in (RECOMMENDED, DOCUMENTED))
    assert (recommended.repeatable, recommended.safety) == (False, Safety.NEVER)
    assert (documented.repeatable, documented.safety) == (True, Safety.ALWAYS)


def test_the_same_over_grpc() -> None:
    """The RPCs of these methods follow their rows."""
    for method in ("UpdateServiceAccount", "EnableServiceAccount", "DisableServiceAccountKey"):
        call = GrpcCall(f"/google.iam.admin.v1.IAM/{method}")
        assert not RECOMMENDED.classify_call(call).repeatable
        assert DOCUMENTED.classify_call(call).repeatable


def test_a_lost_response_does_not_undo_a_newer_change() -> None:
    """Ann's update worked and its response is lost; Bob's newer name stays."""
    with Cloud() as cloud, httpx.Client(base_url=cloud.url) as bob:
        bob.post("/v1/projects/p/serviceAccounts", json={"accountId": "abcdefg"})
        cloud.fault(Fault.reset(when="after", method="PUT", path="abcdefg"))
        ann = httpx.Client(transport=RetryTransport(iam.policy), base_url=cloud.url)
        with virtual_time(), ann, pytest.raises(httpx.TransportError) as caught:
            ann.put(ACCOUNT, json={"displayName": "by Ann"})
        bob.put(ACCOUNT, json={"displayName": "newer, by Bob"})
        assert bob.get(ACCOUNT).json()["displayName"] == "newer, by Bob"
        report = forbear.report(caught.value)
        assert report is not None
        assert len(report.attempts) == 1


def test_tables_compiled_by_many_threads_at_once() -> None:
    """Each thread gets a whole table."""
    from forbear.tables import service

    service._COMPILED.clear()
    start, answers = threading.Barrier(8), list[bool]()

    def judge() -> None:
        start.wait()
        answers.append(RECOMMENDED.classify(Request("GET", "iam.googleapis.com", ACCOUNT)).operation is not None)

    threads = [threading.Thread(target=judge) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 8
