"""Requirements of a copy: the version that may be replaced, and headers for test servers."""

import pickle
from pathlib import Path
from typing import Any, Literal

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.transfer.uploads import INSERT, file_of, stored, storing, versions
from forbear_transfer import Credentials, Settings, Storage, Summary, Url, cp

REWRITE = "storage.objects.rewrite"
OBJECT = b'{"bucket":"bkt","name":"thing","generation":"1","size":"0"}'


def copied(cloud: Cloud, source: object, **options: Any) -> Summary:
    """Copy to one object in virtual time."""
    with virtual_time():
        return cp(str(source), "gs://bkt/thing", settings=Settings(endpoint=cloud.url), **options)


@pytest.mark.parametrize("when", [None, "before", "after"])
@pytest.mark.parametrize("way", ["upload", "copy"])
def test_a_required_version(way: str, when: Literal["before", "after"] | None, cloud: Cloud, tmp_path: Path) -> None:
    """The version that was named is replaced, once, also after a lost response; any other one stays."""
    old = cloud.store.put("bkt", "thing", b"old").generation
    cloud.store.put("bkt", "from", b"new")
    path = tmp_path / "file"
    path.write_bytes(b"new")
    source = path if way == "upload" else "gs://bkt/from"
    for wrong in (0, old + 1):
        failed = copied(cloud, source, generation=wrong)
        assert [failure.hint for failure in failed.failures] == [
            "look at it, then start again" if wrong else "remove it, or allow it to be replaced"
        ]
        assert stored(cloud) == b"old"
    if when is not None:
        cloud.fault(Fault.reset(when=when, operation=INSERT if way == "upload" else REWRITE, nth=1))
    before = versions(cloud)
    assert copied(cloud, source, generation=old).ok
    assert (stored(cloud), versions(cloud) - before) == (b"new", 1)


def test_a_target_that_must_be_absent(cloud: Cloud, tmp_path: Path) -> None:
    """Generation 0 makes a new object, and fails where one is."""
    path = file_of(tmp_path, 100)
    assert copied(cloud, path, generation=0).ok
    assert copied(cloud, path, generation=0).failed == 1
    assert versions(cloud) == 1


@pytest.mark.anyio
async def test_headers_go_to_the_endpoint_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request has them; one to another address, which a server names for the data, has none."""
    monkeypatch.delenv("http_proxy", raising=False)
    with Wire(reply(200, OBJECT)) as other, Wire(reply(200, OBJECT)) as wire:
        async with Storage(endpoint=wire.url, headers={"X-Test": "1", "Authorization": "Bearer x"}) as storage:
            await storage.stat(Url("bkt", "thing"))
            monkeypatch.setattr(storage, "is_trusted", _yes)
            async with await storage.stream("GET", f"{other.url}/session", {}) as response:
                await storage.read(response)
    names = ("x-test", "authorization")
    assert [wire.seen[0].header(name) for name in names] == ["1", "Bearer x"]
    assert [other.seen[0].header(name) for name in names] == [None, None]


def _yes(_: str) -> bool:
    return True


async def _opened(**settings: Any) -> None:
    async with storing("http://localhost:1", **settings):
        pass


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"Range": "bytes=0-1"}, "`headers` must not set Range"),
        ({"x-goog-if-generation-match": "0"}, "`headers` must not set x-goog-if-generation-match"),
        ({"User-Agent": "x"}, "`headers` must not set User-Agent"),
        ({"X\n": "1"}, "`headers` must have names of letters"),
        ({"": "1"}, "`headers` must have names of letters"),
        ({"X": "1\r\nY: 2"}, "the value of X must be visible ASCII"),
        ({"X": "ü"}, "the value of X must be visible ASCII"),
    ],
)
async def test_wrong_headers(headers: dict[str, str], text: str) -> None:
    """Headers that would break requests are refused before any is sent."""
    with pytest.raises(ValueError, match=text):
        await _opened(headers=headers)


def test_secrets_in_headers() -> None:
    """A secret goes over https or within this machine only, and not beside credentials; settings do not print it."""
    secret = {"Authorization": "Bearer secret"}
    with pytest.raises(ValueError, match=r"must not send Authorization to http://gcs\.invalid over plain http"):
        Storage(endpoint="http://gcs.invalid", headers=secret)
    with pytest.raises(ValueError, match=r"must not set Authorization beside `credentials`"):
        Storage(endpoint="https://gcs.invalid", credentials=Credentials("key.json"), headers=secret)
    settings = Settings(endpoint="https://gcs.invalid", headers=secret)
    assert "secret" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
