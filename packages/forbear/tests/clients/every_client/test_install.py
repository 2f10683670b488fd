"""`install`: retries for a client that exists already, through its own transports."""

import itertools
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import forbear
import forbear.clients.httpx
import forbear.clients.httpx2
from forbear.testing import virtual_time
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library

anthropic = Library("anthropic")
openai = Library("openai")

SEARCH = "http://api.example.com/search"
CHAT = reply(
    200,
    b'{"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": '
    b'"stop", "message": {"role": "assistant", "content": "hi"}}]}',
    "Content-Type: application/json",
)
MESSAGE = reply(
    200,
    b'{"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}], '
    b'"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}',
    "Content-Type: application/json",
)


def client_of(flavour: Flavour, **options: Any) -> Any:
    """Return a client of the flavour with transports of its own."""
    kind = flavour.library.AsyncClient if flavour.is_async else flavour.library.Client
    return kind(verify=False, **options)


def post(flavour: Flavour, client: Any, url: str) -> Any:
    """Post in virtual time; return the response."""

    async def apost() -> Any:
        async with client:
            return await client.post(url, content=b"q")

    with virtual_time(seed=7):
        if flavour.is_async:
            return flavour.run(apost)
        with client:
            return client.post(url, content=b"q")


def test_a_client(flavour: Flavour) -> None:
    """Its requests are retried by the options that `RetryTransport` takes."""
    with Wire(reply(503), reply(200)) as wire:
        client = client_of(flavour)
        assert (
            flavour.adapter.install(client, forbear.retry(on=forbear.transient), safe=f"POST {wire.url}/search")
            is client
        )
        assert post(flavour, client, f"{wire.url}/search").status_code == 200


def test_a_client_with_a_proxy(flavour: Flavour) -> None:
    """The proxy stays, and its requests are retried; `transport=` alone would leave them without retries."""
    for installed, expected in ((False, 503), (True, 200)):
        with Wire(reply(503), reply(200)) as wire:
            options = {} if installed else {"transport": flavour.transport(safe=f"POST {SEARCH}")}
            client = client_of(flavour, proxy=wire.url, **options)
            if installed:
                flavour.adapter.install(client, safe=f"POST {SEARCH}")
            assert post(flavour, client, SEARCH).status_code == expected
            assert wire.seen[0].line == f"POST {SEARCH} HTTP/1.1"


def test_every_mount_is_wrapped(flavour: Flavour) -> None:
    """Every mount is wrapped; None still stands for the client's own transport."""
    with Wire(reply(503), reply(200), reply(503), reply(200)) as wire:
        mounts = {"http://api.example.com": flavour.rerouted(wire.url), "https://": None}
        client = client_of(flavour, mounts=mounts, trust_env=False)
        flavour.adapter.install(client, safe=[f"POST {SEARCH}", f"POST {wire.url}/"])
        assert post(flavour, client, SEARCH).status_code == 200
        assert None in client._mounts.values()


def test_a_wrong_install_leaves_the_client_unchanged(flavour: Flavour) -> None:
    """Every error names the rule and the cure, and leaves the client as it was."""
    install, name = flavour.adapter.install, flavour.library.__name__
    client = client_of(flavour)
    before = client._transport
    with pytest.raises(TypeError, match="`safe` must"):
        install(client, safe=7)
    with pytest.raises(TypeError, match=f"`client` must be an {name}.Client or {name}.AsyncClient, .*, got 7$"):
        install(7)
    assert client._transport is before
    install(client)
    with pytest.raises(ValueError, match="has forbear's retries already"):
        install(client)
    lost = client_of(flavour)
    del lost._mounts
    with pytest.raises(RuntimeError, match=rf"this version of {name} \([\d.]+\); make the client with transport="):
        install(lost)


def test_the_client_of_the_other_library() -> None:
    """The error names the module for it."""
    with pytest.raises(TypeError, match=r"it sends by httpx2, so use forbear.clients.httpx2.install$"):
        forbear.clients.httpx.install(openai.OpenAI(api_key="k", max_retries=0))


def test_an_sdk_that_retries() -> None:
    """Its own retries would multiply."""
    with pytest.raises(ValueError, match=r"make it with max_retries=0; got OpenAI\(max_retries=2\)"):
        forbear.clients.httpx2.install(openai.OpenAI(api_key="k"))


def openai_says(url: str) -> Any:
    """Ask through the SDK of OpenAI; return the text."""
    with openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
        forbear.install(client, safe=f"POST {url}/v1/chat/completions")
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
        return answer.choices[0].message.content


def anthropic_says(url: str) -> Any:
    """Ask through the SDK of Anthropic; return the text."""
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        forbear.install(client, safe=f"POST {url}/v1/messages")
        answer = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
        return answer.content[0].text


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (openai_says, CHAT),
        pytest.param(anthropic_says, MESSAGE, marks=pytest.mark.soak),  # its import takes seconds
    ],
)
def test_an_sdk(ask: Any, answer: Answer) -> None:
    """Its requests are retried, at the times that the server names."""
    with virtual_time() as time, Wire(reply(429, b"", "Retry-After: 7"), reply(503), answer) as wire:
        assert ask(wire.url) == "hi"
        assert len(wire.seen) == 3
        assert time.slept[0] >= 7


@pytest.mark.parametrize(
    ("failure", "requests", "least"),
    [
        (reply(529, b"", "retry-after-ms: 7000"), 2, 7),
        (reply(409), 2, 0),
        (reply(400, b"", "x-should-retry: true"), 2, 0),
        (reply(500, b"", "x-should-retry: false"), 1, 0),
        (reply(400), 1, 0),
        (reply(429, b"", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 6s"), 2, 6),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize(
    ("ask", "answer"), [(openai_says, CHAT), pytest.param(anthropic_says, MESSAGE, marks=pytest.mark.soak)]
)
def test_an_sdk_keeps_its_own_rules(ask: Any, answer: Answer, failure: Answer, requests: int, least: float) -> None:
    """A call that the user vouches for is repeated whenever the SDK would have repeated it, and waits as long."""
    if "x-ratelimit" in str(failure) and ask is anthropic_says:
        least = 0  # Anthropic sends other headers
    with virtual_time() as time, Wire(failure, answer) as wire:
        with suppress(openai.APIStatusError, anthropic.APIStatusError):
            ask(wire.url)
        assert len(wire.seen) == requests
        assert sum(time.slept) >= least


def test_an_sdk_that_fails() -> None:
    """Its error has the report; the table of language models has allowed the repeats, so no vouch was needed."""
    with virtual_time(), Wire(reply(503)) as wire:
        with pytest.raises(openai.InternalServerError) as caught:
            openai_says(wire.url)
        report = forbear.report(caught.value)
        assert report is not None
        assert (report.count, report.vouched) == (len(wire.seen), False)


@pytest.mark.soak
@pytest.mark.parametrize("oldest", ["httpx==0.27.0", "httpx2==2.0.0"])
def test_the_oldest_versions(oldest: str, tmp_path: Path) -> None:
    """`install` finds the transports of the oldest versions that the extras allow, too."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([*pip, "--target", str(tmp_path), oldest], timeout=600, check=True)
    library = oldest.partition("=")[0]
    selected = f"({library}- or {library}]) and not oldest"
    run = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", selected]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout  # it is 5 where no test is selected
