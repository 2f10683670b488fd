"""The part about IAM: several writers grant a role on one service account at once, and some replies are lost.

All of them change the same policy. Before anybody writes for the first time, all have read: so in every round all but
one are in conflict (409 ABORTED). `none` makes one attempt. `naive` repeats the whole function whenever it raises, as a
decorator does. `forbear` is `forbear.aupdate` over httpx with a RetryTransport: after a lost reply it looks whether the
member is there before it adds it again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from forbear.cli.demo.contest import FACTOR, PATIENCE
from forbear.cli.demo.tally import Losses, Tally, Told, tally
from forbear.clients.httpx import AsyncRetryTransport
from forbear.core.report import report
from forbear.run.runtime import FastClock, current
from forbear.services import iam
from forbear.testing.cloud import Cloud
from forbear.testing.proxy import Cut, Proxy
from forbear.update import aupdate

WRITERS = 4

_POLICY = iam.policy.with_timeout(3600)  # compressed, as what the server takes is not
_ATTEMPTS = 10
_LOST = 0.2
_ACCOUNT = "deployer"
_URL = f"/v1/projects/demo/serviceAccounts/{_ACCOUNT}@demo.iam.gserviceaccount.com"
_ROLE = "roles/viewer"

Json = dict[str, Any]


class Desk:
    """Where a writer reads and writes the policy for one change; it does not write before all others have read."""

    def __init__(self, client: httpx.AsyncClient, others: asyncio.Barrier) -> None:
        self._client = client
        self._others: asyncio.Barrier | None = others

    async def read(self) -> Json:
        """The policy, with its etag."""
        try:
            policy: Json = (await self._client.post(f"{_URL}:getIamPolicy")).raise_for_status().json()
        except httpx.HTTPError:
            await self._meet()
            raise
        await self._meet()
        return policy

    async def write(self, policy: Json) -> None:
        """Write the policy, on condition that its etag is still the same."""
        (await self._client.post(f"{_URL}:setIamPolicy", json={"policy": policy})).raise_for_status()

    async def _meet(self) -> None:
        others, self._others = self._others, None
        if others is not None:
            await others.wait()


def _members(policy: Json) -> list[str]:
    return [member for binding in policy.get("bindings", ()) for member in binding["members"]]


def _adding(member: str) -> Callable[[Json], Json]:
    return lambda policy: policy | {"bindings": [{"role": _ROLE, "members": [*_members(policy), member]}]}


async def _once(desk: Desk, member: str) -> None:
    await desk.write(_adding(member)(await desk.read()))


async def _naive(desk: Desk, member: str) -> None:
    runtime = current.get()
    for retry in range(_ATTEMPTS - 1):
        try:
            return await _once(desk, member)
        except httpx.HTTPError:
            await runtime.asleep(_POLICY.backoff.delay(retry, runtime.random()))
    return await _once(desk, member)


async def _forbear(desk: Desk, member: str) -> None:
    await aupdate(
        read=desk.read,
        modify=_adding(member),
        write=desk.write,
        conflict=iam.is_conflict,
        mine=iam.has_member(_ROLE, member),
        policy=_POLICY,
    )


@dataclass(frozen=True, slots=True)
class _Contender:
    name: str
    transport: Callable[[], httpx.AsyncBaseTransport]
    grant: Callable[[Desk, str], Awaitable[None]]


_CONTENDERS = (
    _Contender("none", httpx.AsyncHTTPTransport, _once),
    _Contender("naive", httpx.AsyncHTTPTransport, _naive),
    _Contender("forbear", lambda: AsyncRetryTransport(_POLICY), _forbear),
)


def contest(seed: int, rounds: int) -> Iterator[tuple[str, Tally]]:
    """Let one contender after the other grant the role to a member per writer and round: name and tally."""
    for contender in _CONTENDERS:
        with Cloud() as cloud:
            cloud.store.iam.create_account("demo", _ACCOUNT)
            address = httpx.URL(cloud.url)
            with Proxy((address.host, address.port or 80), _losing(Losses(seed, _LOST))) as proxy:
                claims = asyncio.run(_compete(contender, f"http://{proxy.host}:{proxy.port}", rounds))
            with httpx.Client(base_url=cloud.url, trust_env=False) as client:
                policy: Json = client.post(f"{_URL}:getIamPolicy").raise_for_status().json()
        yield contender.name, tally(claims, Counter(_members(policy)))


def _losing(losses: Losses) -> Cut:
    def cut(asked: bytes, reply: bytes | None) -> bool:
        """Lose replies that say that the policy was written."""
        written = reply is not None and reply.startswith(b"HTTP/1.1 200 ") and b":setIamPolicy" in asked
        return written and losses("grant")

    return cut


async def _compete(contender: _Contender, url: str, rounds: int) -> list[tuple[str, Told]]:
    current.set(FastClock(FACTOR))
    others = asyncio.Barrier(WRITERS)
    claims = list[tuple[str, Told]]()

    async def write(client: httpx.AsyncClient, writer: int) -> None:
        for number in range(rounds):
            member = f"user:{number}@{writer}.example"
            claims.append((member, await _told(contender.grant(Desk(client, others), member))))

    transport = contender.transport()
    async with (
        httpx.AsyncClient(base_url=url, transport=transport, timeout=PATIENCE, trust_env=False) as client,
        asyncio.TaskGroup() as writers,
    ):
        for writer in range(WRITERS):
            writers.create_task(write(client, writer))
    return claims


async def _told(work: Awaitable[None]) -> Told:
    """What a writer learns of its change."""
    try:
        await work
    except httpx.HTTPStatusError as error:  # a 409 says that this write was not made, but an earlier one may have been
        told = report(error)
        return Told.UNKNOWN if told is not None and told.maybe_done else Told.FAILED
    except httpx.TransportError:
        return Told.UNKNOWN
    return Told.DONE
