"""Finding out what a failed function sent, from its error, and whether the function may be called again."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

import aiohttp
import httpx
import requests
import urllib3

import forbear
from benchmarks.measure import Effort, Sampler, race, repeated
from benchmarks.table import Table, Target
from forbear.judges.functions import find, is_bare, judge
from forbear.run.judge_slot import RunContext
from forbear.run.runtime import current_runtime
from forbear.run.state import Run
from forbear_testkit.clients.wire import Answer, Wire

_LOST = Answer(end="close")
_FEW, _MANY = "nothing in 15 frames", "nothing in 115 frames"


def evidence(effort: Effort) -> Table:
    """Errors of four clients whose response is lost: of a read, which is repeated, and of a POST, with its note."""
    runtime = current_runtime()
    run = Run(forbear.retry(Exception), "fail", runtime, runtime.monotonic())
    context = RunContext(run, _fail, (), {})
    errors = {_FEW: _catch(partial(_fail, 14)), _MANY: _catch(partial(_fail, 114)), **dict(_lose_responses())}
    samplers: dict[str, Sampler] = {name: repeated(partial(_judge, error, context)) for name, error in errors.items()}
    targets = (Target(_FEW, 2), *(Target(name, 25) for name in errors if name.startswith("GET")))
    return Table(
        "evidence", "Read what an error shows, and judge it", "us", 1e6, race(samplers, effort), targets=targets
    )


def _judge(error: Exception, context: RunContext) -> None:
    """Find what an error shows and judge it, as a run does after a failure."""
    found = None if is_bare(error) else find(error, None)
    if found is not None:
        judge(found, error, context)


def _fail(frames: int) -> None:
    """Raise an error with a traceback of one frame more."""
    if not frames:
        raise ValueError("nothing is shown")
    _fail(frames - 1)


def _catch(work: Callable[[], object]) -> Exception:
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("the benchmark needs an error")


def _lose_responses() -> Iterator[tuple[str, Exception]]:
    """Yield the errors of requests whose responses are lost, by method and client."""
    with Wire(_LOST) as wire, httpx.Client(verify=False) as client, urllib3.PoolManager(retries=False) as pool:
        senders: dict[str, Callable[[str, str], object]] = {
            "httpx": client.request,
            "requests": partial(requests.request, timeout=5),
            "urllib3": pool.request,
            "aiohttp": _request_by_aiohttp,
        }
        for method in ("GET", "POST"):
            for name, send in senders.items():
                yield f"{method} of {name}", _catch(partial(send, method, f"{wire.url}/orders"))


def _request_by_aiohttp(method: str, url: str) -> None:
    async def send() -> None:
        async with aiohttp.ClientSession() as session, session.request(method, url):
            pass

    asyncio.run(send())
