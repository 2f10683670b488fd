"""The adapters for requests, urllib3, aiohttp and botocore on their happy path: a GET of 1 kB on a kept connection."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import aiohttp
import boto3
import requests
import urllib3
from botocore import UNSIGNED
from botocore.config import Config

from benchmarks.measure import Effort, Sampler, arepeated, race, repeated
from benchmarks.table import OURS, Table, Target
from benchmarks.transport import BARE, PATIENCE, patient, server
from forbear.clients import botocore
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry


def with_requests(effort: Effort) -> Table:
    """The share of the adapter."""
    with server() as url, requests.Session() as bare, requests.Session() as session:
        bare.trust_env = session.trust_env = False
        session.mount("http://", RetryAdapter())
        samplers = {BARE: repeated(partial(bare.get, url)), OURS: repeated(partial(session.get, url))}
        return _table("requests", samplers, effort)


def with_urllib3(effort: Effort) -> Table:
    """The share of the Retry object."""
    with server() as url, urllib3.PoolManager(retries=0) as bare, urllib3.PoolManager(retries=Retry()) as pool:
        samplers = {
            BARE: repeated(partial(bare.request, "GET", url)),
            OURS: repeated(partial(pool.request, "GET", url)),
        }
        return _table("urllib3", samplers, effort)


def with_aiohttp(effort: Effort) -> Table:
    """The share of the middleware."""
    with server() as url, asyncio.Runner() as runner:
        bare, session = runner.run(_sessions())
        samplers = {
            BARE: arepeated(runner, partial(_fetch, bare, url)),
            OURS: arepeated(runner, partial(_fetch, session, url)),
        }
        table = _table("aiohttp", samplers, effort)
        runner.run(_close(bare, session))
        return table


def with_botocore(effort: Effort) -> Table:
    """The share of the handlers: GetObject of S3."""
    config = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, retries={"mode": "standard"})
    session: Any = boto3.Session()
    with server() as url:
        make = partial(session.client, "s3", region_name="us-east-1", endpoint_url=url, config=config)
        with closing(make()) as bare, closing(make()) as client:
            botocore.install(client)
            samplers = {
                name: repeated(partial(_get_object, each.get_object)) for name, each in ((BARE, bare), (OURS, client))
            }
            return _table("botocore", samplers, effort)


def _get_object(get: Callable[..., dict[str, Any]]) -> object:
    return get(Bucket="bucket", Key="key")["Body"].read()


def _table(library: str, samplers: dict[str, Sampler], effort: Effort) -> Table:
    samples = race(samplers, patient(effort))
    target = Target(OURS, 1.03, BARE)
    title = f"{library}, GET over loopback"
    return Table(f"{library}-loopback", title, "us", 1e6, samples, (BARE,), (target,), notes=(PATIENCE,))


async def _sessions() -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
    return aiohttp.ClientSession(), aiohttp.ClientSession(middlewares=(RetryMiddleware(),))


async def _fetch(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        return await response.read()


async def _close(*sessions: aiohttp.ClientSession) -> None:
    for session in sessions:
        await session.close()
