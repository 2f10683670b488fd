"""Downloads from servers that break, repack, change and half support ranges: every body is one whole body."""

import gzip
import random

import pytest

from forbear.services import rfc9110
from forbear_testkit.clients.downloads import LEFT_BEFORE_ITS_END
from forbear_testkit.clients.flavours import FLAVOURS, Flavour
from forbear_testkit.clients.others import OTHERS
from forbear_testkit.clients.wire import Answer, Wire

SOME = [flavour for flavour in FLAVOURS if flavour.name in ("httpx", "httpx2-trio")]


class Moody(Wire):
    """A server of one object that is replaced now and then; every response is true to RFC 9110, but few are whole.

    Each server has its ways: how the object is named, whether it is packed while it is sent (under the same name, and
    with other bytes each time), whether there are ranges, and whether a part is called 200. `breaks` are left.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(Answer())
        self.random = chance = random.Random(seed)
        size = chance.choice([1, 50, 3000, 40_000])
        first = chance.randbytes(size)
        at = chance.randrange(size)
        self.versions = [
            first,
            first[:at] + b"?" + first[at + 1 :],
            first[:at] + chance.randbytes(chance.choice([1, size])),
        ]
        self.version = 0
        self.name = chance.choice(["strong", "weak", "none"])
        self.packs = chance.choice([0.0, 0.0, 0.5, 1.0])
        self.ranges = chance.choice(["honoured", "honoured", "called 200", "ignored"])
        self.replaced = chance.choice([0.0, 0.0, 0.2])
        self.breaks = chance.randrange(1, 5)

    def _next(self, head: bytes) -> Answer:
        chance = self.random
        asked = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head.decode().split("\r\n")[1:])
        }
        if chance.random() < self.replaced:
            self.version = chance.randrange(len(self.versions))
        body, status, headers = self.versions[self.version], 200, list[str]()
        etag = {"strong": f'"{self.version}"', "weak": f'W/"{self.version}"', "none": ""}[self.name]
        if etag:
            headers.append(f"ETag: {etag}")
        first, _, last = asked.get("range", "").removeprefix("bytes=").partition("-")
        if first and self.ranges != "ignored" and asked.get("if-range", etag) == etag:
            if int(first) >= len(body):
                status, headers = 416, [*headers, f"Content-Range: bytes */{len(body)}"]
                body = b""
            else:
                end = min(int(last or len(body)), len(body) - 1)
                headers.append(f"Content-Range: bytes {first}-{end}/{len(body)}")
                body, status = body[int(first) : end + 1], 206 if self.ranges == "honoured" else 200
        elif "gzip" in asked.get("accept-encoding", "") and chance.random() < self.packs:
            body = gzip.compress(body, chance.choice([1, 9]), mtime=chance.choice([1, 2]))
            headers.append("Content-Encoding: gzip")
        return self._framed(status, headers, body)

    def _framed(self, status: int, headers: list[str], body: bytes) -> Answer:
        """Frame a response as chunks or by its length, and break it where it is to break."""
        chance = self.random
        sent, end = body, "keep"
        if self.breaks and chance.random() < 0.8:
            self.breaks -= 1
            sent, end = body[: chance.randrange(len(body) + 1)], chance.choice(["close", "close", "reset"])
            if chance.random() < 0.2:
                return Answer(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        if chance.random() < 0.5 and status != 416:
            headers.append("Transfer-Encoding: chunked")
            sent = (b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b"") + (b"0\r\n\r\n" if end == "keep" else b"")
        else:
            headers.append(f"Content-Length: {len(body)}")
            end = "keep" if len(sent) == len(body) else end
        return Answer("\r\n".join([f"HTTP/1.1 {status} Whatever", *headers, "", ""]).encode() + sent, end)


def check(flavour: Flavour, seed: int) -> bool:
    """Fetch the object or a part of it, and return whether that succeeded; what there is then is of one version."""
    with Moody(seed) as server:
        span = random.Random(seed).choice(["", "", "bytes=0-", "bytes=0-9"])
        headers = {"Range": span} if span else {}
        policy = rfc9110.policy.with_attempts(8)
        result = flavour.call(flavour.transport(policy), "GET", server.url, headers=headers)
        wholes = [*server.versions]
        if span == "bytes=0-9":
            wholes += [whole[:10] for whole in wholes]
        if result.error is None and result.status in (200, 206):
            assert result.content in wholes, (seed, len(result.content), [len(whole) for whole in wholes])
            named = result.response.headers.get("etag")
            if named:
                version = server.versions[int(named.strip('W/"'))]
                assert result.content in (version, version[:10]), seed
            return True
        return False


@pytest.mark.parametrize("flavour", [*SOME, *OTHERS], ids=lambda flavour: flavour.name, indirect=True)
@LEFT_BEFORE_ITS_END
def test_a_body_is_of_one_version(flavour: Flavour) -> None:
    """Forty servers; most downloads succeed, and none is a mixture."""
    assert sum(check(flavour, seed) for seed in range(40)) > 25


@pytest.mark.soak
@pytest.mark.parametrize("flavour", [*SOME, *OTHERS], ids=lambda flavour: flavour.name, indirect=True)
@LEFT_BEFORE_ITS_END
def test_a_body_is_of_one_version_for_long(flavour: Flavour) -> None:
    """The same for many more."""
    assert sum(check(flavour, seed) for seed in range(2000)) > 1200
