"""Read-modify-write through each client: a change whose response is lost is applied once, whatever the client does."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from typing import Any, cast

import aiohttp
import httpx
import pytest
import requests
import urllib3
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

PATH = "/storage/v1/b/bkt/o/counter"
PATCH = "storage.objects.patch"
LOST = [
    Fault.reset(when="after", operation=PATCH),
    Fault.status(503, when="after", operation=PATCH),
    Fault.close(when="after", operation=PATCH),
]


def counted(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """One more."""
    return {"n": str(int((metadata or {}).get("n", "0")) + 1)}


def modify(found: dict[str, Any]) -> dict[str, Any]:
    """The object with one more."""
    return {**found, "metadata": counted(found.get("metadata"))}


def guarded(found: dict[str, Any]) -> str:
    """Return the path to patch it, under the condition that nobody else did."""
    return f"{PATH}?ifMetagenerationMatch={found['metageneration']}"


def checked(response: Any) -> Any:
    """The JSON of a success."""
    response.raise_for_status()
    return response.json()


def cycle(url: str, get: Callable[..., Any], patch: Callable[..., Any]) -> None:
    """The cycle through a client whose responses know how to raise for their status."""
    forbear.update(
        read=lambda: checked(get(url + PATH)),
        modify=modify,
        write=lambda found: checked(patch(url + guarded(found), json={"metadata": found["metadata"]})),
        conflict=cloud_storage.is_conflict,
    )


def by_httpx(url: str) -> None:
    """httpx."""
    transport = RetryTransport(cloud_storage.policy, transport=httpx.HTTPTransport(verify=False))
    with httpx.Client(transport=transport) as client:
        cycle(url, client.get, client.patch)


def by_requests(url: str, adapter: HTTPAdapter | None = None) -> None:
    """requests."""
    with requests.Session() as session:
        session.mount("http://", adapter or RetryAdapter(cloud_storage.policy))
        cycle(url, session.get, session.patch)


def by_requests_over_urllib3(url: str) -> None:
    """requests with nothing but a Retry object."""
    by_requests(url, HTTPAdapter(max_retries=Retry(cloud_storage.policy, bodies_are_reusable=True)))


def by_urllib3(url: str) -> None:
    """urllib3, whose responses do not raise."""

    class Failed(Exception):
        def __init__(self, response: Any) -> None:
            super().__init__(response.status)
            self.code, self.response = response.status, response

    def read(response: Any) -> Any:
        if response.status >= 400:
            raise Failed(response)
        return response.json()

    with urllib3.PoolManager(retries=Retry(cloud_storage.policy, bodies_are_reusable=True)) as pool:
        forbear.update(
            read=lambda: read(pool.request("GET", url + PATH)),
            modify=modify,
            write=lambda found: read(pool.request("PATCH", url + guarded(found), json={"metadata": found["metadata"]})),
            conflict=lambda error: isinstance(error, Failed) and error.code == 412,
        )


def by_aiohttp(url: str, *, by_session: bool = False) -> None:
    """aiohttp, whose errors do not know their response."""

    async def read(request: Any) -> Any:
        async with request as response:
            response.raise_for_status()
            return await response.json()

    async def main() -> None:
        middlewares = (RetryMiddleware(cloud_storage.policy),)
        async with aiohttp.ClientSession(middlewares=middlewares, raise_for_status=by_session) as session:
            await forbear.aupdate(
                read=lambda: read(session.get(url + PATH)),
                modify=modify,
                write=lambda found: read(session.patch(url + guarded(found), json={"metadata": found["metadata"]})),
                conflict=cloud_storage.is_conflict,
            )

    with asyncio.Runner() as runner:
        runner.run(main(), context=copy_context())


def by_aiohttp_session(url: str) -> None:
    """aiohttp, where the session raises for the status."""
    by_aiohttp(url, by_session=True)


def by_google(url: str, **retry: Any) -> None:
    """google-cloud-storage, made safe by `install` or by the object of each call."""
    anonymous = cast("Callable[[], object]", AnonymousCredentials)()
    client: Any = storage.Client(project="p", credentials=anonymous, client_options={"api_endpoint": url})
    if not retry:
        install(client)

    def change(blob: Any) -> Any:
        blob.metadata = counted(blob.metadata)
        return blob

    def write(blob: Any) -> None:
        blob.patch(if_metageneration_match=blob.metageneration, **retry)

    try:
        forbear.update(
            read=lambda: client.bucket("bkt").get_blob("counter"),
            modify=change,
            write=write,
            conflict=cloud_storage.is_conflict,
        )
    finally:
        client.close()


def by_google_retry(url: str) -> None:
    """google-cloud-storage with `retry=`."""
    by_google(url, retry=DEFAULT_RETRY)


WAYS = [
    by_httpx, by_requests, by_requests_over_urllib3, by_urllib3, by_aiohttp, by_aiohttp_session, by_google,
    by_google_retry,
]  # fmt: skip


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A cloud with an object."""
    with Cloud() as cloud:
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "counter", b"")
        yield cloud


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_change_whose_response_is_lost_is_applied_once(cloud: Cloud, way: Callable[[str], None]) -> None:
    """The 412 to the client's own repeat is no conflict with another writer, and nobody can tell without `mine`."""
    for number, fault in enumerate(LOST, start=1):
        cloud.fault(fault)
        with virtual_time(seed=7), pytest.raises(Exception, match=r"412|Precondition") as caught:
            way(cloud.url)
        report = forbear.report(caught.value)
        assert report is not None, caught.value
        assert report.maybe_done
        assert cloud.effects.count(PATCH) == number
