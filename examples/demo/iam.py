"""The IAM part: several writers add members to one policy at once, and some responses that confirm a write are lost.

In each round every writer adds one member. No writer writes before all have read the policy. So all but one of the
first writes get a conflict (409 ABORTED). `none` reads and writes once. `naive` repeats both on every error, as a retry
decorator does. `forbear` is `forbear.aupdate` over httpx with a RetryTransport: after a lost response it looks for its
member before it adds it again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx

from examples.demo.checker import Tally, WriteResult, tally
from examples.demo.contenders import repeat_on_any_error
from examples.demo.faults import RandomLosses
from examples.demo.storage import FACTOR, SERVER_TIMEOUT
from forbear.clients.httpx import AsyncRetryTransport
from forbear.core.report import report
from forbear.read_modify_write import aupdate
from forbear.run.runtime import FastClock, current
from forbear.services import iam
from forbear.testing.proxy import Cut, Proxy
from forbear_cloud import Cloud

WRITERS = 4

_POLICY = iam.policy.with_timeout(3600)  # in compressed time; the server's own time is real
_ATTEMPTS = 10
_LOST = 0.2
_ACCOUNT = "deployer"
_URL = f"/v1/projects/demo/serviceAccounts/{_ACCOUNT}@demo.iam.gserviceaccount.com"
_ROLE = "roles/viewer"

Json = dict[str, Any]


class PolicyClient:
    """Reads and writes the policy of a service account for one change.

    Its first read ends only when all writers have tried to read.
    """

    def __init__(self, client: httpx.AsyncClient, barrier: asyncio.Barrier) -> None:
        self._client = client
        self._barrier: asyncio.Barrier | None = barrier

    async def read(self) -> Json:
        """Return the policy with its etag, or raise httpx.HTTPError; its first call also waits for all writers."""
        try:
            policy: Json = (await self._client.post(f"{_URL}:getIamPolicy")).raise_for_status().json()
        except httpx.HTTPError:
            await self._wait_for_others()
            raise
        await self._wait_for_others()
        return policy

    async def write(self, policy: Json) -> None:
        """Set the policy, if its etag is still the server's; raise httpx.HTTPStatusError if the server refuses it."""
        (await self._client.post(f"{_URL}:setIamPolicy", json={"policy": policy})).raise_for_status()

    async def _wait_for_others(self) -> None:
        barrier, self._barrier = self._barrier, None
        if barrier is not None:
            await barrier.wait()


def _members(policy: Json) -> list[str]:
    return [member for binding in policy.get("bindings", ()) for member in binding["members"]]


def _adding(member: str) -> Callable[[Json], Json]:
    return lambda policy: policy | {"bindings": [{"role": _ROLE, "members": [*_members(policy), member]}]}


async def _once(client: PolicyClient, member: str) -> None:
    await client.write(_adding(member)(await client.read()))


async def _naive(client: PolicyClient, member: str) -> None:
    await repeat_on_any_error(lambda: _once(client, member), _ATTEMPTS, _POLICY.backoff)


async def _forbear(client: PolicyClient, member: str) -> None:
    await aupdate(
        read=client.read,
        modify=_adding(member),
        write=client.write,
        conflict=iam.is_conflict,
        mine=iam.has_member(_ROLE, member),
        policy=_POLICY,
    )


_CONTENDERS: dict[
    str, tuple[Callable[[], httpx.AsyncBaseTransport], Callable[[PolicyClient, str], Awaitable[None]]]
] = {
    "none": (httpx.AsyncHTTPTransport, _once),
    "naive": (httpx.AsyncHTTPTransport, _naive),
    "forbear": (lambda: AsyncRetryTransport(_POLICY), _forbear),
}


def compare(seed: int, rounds: int) -> Iterator[tuple[str, Tally]]:
    """Let each contender add one member per writer and round to a policy in a fresh cloud; yield its name and tally."""
    for name in _CONTENDERS:
        with Cloud() as cloud:
            cloud.store.iam.create_account("demo", _ACCOUNT)
            address = httpx.URL(cloud.url)
            with Proxy((address.host, address.port or 80), _losing(RandomLosses(seed, _LOST))) as proxy:
                results = asyncio.run(_write_all(name, f"http://{proxy.host}:{proxy.port}", rounds))
            with httpx.Client(base_url=cloud.url, trust_env=False) as client:
                policy: Json = client.post(f"{_URL}:getIamPolicy").raise_for_status().json()
        yield name, tally(results, Counter(_members(policy)))


def _losing(losses: RandomLosses) -> Cut:
    def cut(request: bytes, response: bytes | None) -> bool:
        """Return whether to lose this message: some of the 200 responses to writes of the policy, no others."""
        written = response is not None and response.startswith(b"HTTP/1.1 200 ") and b":setIamPolicy" in request
        return written and losses("grant")

    return cut


async def _write_all(name: str, url: str, rounds: int) -> list[tuple[str, WriteResult]]:
    make_transport, grant = _CONTENDERS[name]
    current.set(FastClock(FACTOR))
    barrier = asyncio.Barrier(WRITERS)
    results = list[tuple[str, WriteResult]]()

    async def write(client: httpx.AsyncClient, writer: int) -> None:
        for number in range(rounds):
            member = f"user:{number}@{writer}.example"
            results.append((member, await _result(grant(PolicyClient(client, barrier), member))))

    async with (
        httpx.AsyncClient(base_url=url, transport=make_transport(), timeout=SERVER_TIMEOUT, trust_env=False) as client,
        asyncio.TaskGroup() as writers,
    ):
        for writer in range(WRITERS):
            writers.create_task(write(client, writer))
    return results


async def _result(work: Awaitable[None]) -> WriteResult:
    """Await a change, and return its result as its writer learns it: DONE without an error.

    An error status means FAILED, or UNKNOWN if forbear's report says that an earlier attempt may have worked. An error
    without a response means UNKNOWN.
    """
    try:
        await work
    except httpx.HTTPStatusError as error:  # after a 409 this write was not made, but an earlier one may have been
        attempts = report(error)
        return WriteResult.UNKNOWN if attempts is not None and attempts.maybe_done else WriteResult.FAILED
    except httpx.TransportError:
        return WriteResult.UNKNOWN
    return WriteResult.DONE
