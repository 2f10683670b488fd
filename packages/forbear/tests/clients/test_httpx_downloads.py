"""Downloads that break: they go on at the very byte, from the very object, or fail as they would have without us."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

import forbear
from forbear import Limits
from forbear.events import Event, Failed, GaveUp, Reason, Scheduled
from forbear.services import cloud_storage, rfc9110
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.downloads import LEFT_BEFORE_ITS_END
from forbear_testkit.clients.flavours import Flavour, Result
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

DATA = bytes(range(256)) * 3
SMALL = b"every offset of it"
MEDIA = "/storage/v1/b/bkt/o/thing?alt=media"


def fetch(
    flavour: Flavour, url: str, policy: Any = cloud_storage.policy, transport: Any = None, **options: Any
) -> Result:
    """Get a URL under a policy."""
    return flavour.call(flavour.transport(policy, transport=transport or flavour.base()), "GET", url, **options)


@EVERY
@pytest.mark.parametrize("reset", [False, True], ids=["FIN", "RST"])
def test_goes_on_from_every_offset(flavour: Flavour, cloud: Cloud, reset: bool) -> None:
    """Wherever the body breaks off, one more request brings the rest, pinned to the object's generation."""
    item = cloud.store.put("bkt", "thing", SMALL)
    for offset in range(len(SMALL)):
        seen = len(cloud.requests)
        cloud.fault(Fault.truncate(offset, reset=reset))
        assert fetch(flavour, cloud.url + MEDIA).content == SMALL
        assert len(cloud.requests) == seen + 2
        last = cloud.requests[-1]
        assert last.headers["range"] == f"bytes={offset}-{len(SMALL) - 1}"
        assert last.query == f"alt=media&generation={item.generation}"


@EVERY
def test_a_range_goes_on_within_its_own_bounds(flavour: Flavour, cloud: Cloud) -> None:
    """Of a part that was asked for, only the rest of that part is fetched."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(30, reset=True))
    result = fetch(flavour, cloud.url + MEDIA, headers={"Range": "bytes=100-199"})
    assert (result.status, result.content) == (206, DATA[100:200])
    assert [request.headers["range"] for request in cloud.requests] == ["bytes=100-199", "bytes=130-199"]


@EVERY
def test_breaks_again_and_again(flavour: Flavour, cloud: Cloud) -> None:
    """Resumptions may break, too: each one that gets on gives the policy's patience anew."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(*(Fault.truncate(10, reset=bool(number % 2)) for number in range(20)))
    policy = cloud_storage.policy.with_limits(Limits(attempts=2))
    result = fetch(flavour, cloud.url + MEDIA, policy)
    assert result.content == DATA
    assert len(cloud.requests) == 21


def test_gives_up_where_it_does_not_get_on(flavour: Flavour, cloud: Cloud) -> None:
    """Without progress the policy's limits count; the error is the first one, with one note of all that was tried."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(10), Fault.status(503), Fault.reset(), Fault.truncate(0, times=None))
    result = fetch(flavour, cloud.url + MEDIA, cloud_storage.policy.with_limits(Limits(attempts=4)), stop_after=10**6)
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert result.content == DATA[:10]
    assert [attempt.error for attempt in result.report.attempts] == [
        "RemoteProtocolError", "HTTP 503", "ReadError", "RemoteProtocolError"
    ]  # fmt: skip
    assert result.report.reason is Reason.ATTEMPTS
    assert result.report.operation == "storage.objects.get (body)"
    assert [note.partition(" in ")[0] for note in result.notes] == ["forbear: gave up after 4 attempts"]
    assert len(cloud.requests) == 4


@EVERY
def test_obeys_the_server_while_going_on(flavour: Flavour, cloud: Cloud) -> None:
    """A Retry-After on the way to the rest is obeyed."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(10), Fault.status(429, retry_after=50))
    result = fetch(flavour, cloud.url + MEDIA)
    assert result.content == DATA
    assert result.slept[-1] >= 50


@EVERY
@pytest.mark.parametrize("versioned", [False, True])
def test_never_mixes_two_objects(flavour: Flavour, cloud: Cloud, versioned: bool) -> None:
    """If an object is replaced meanwhile, the old one goes on if it is kept, or the break is raised."""
    cloud.store.bucket("bkt").fields["versioning"] = {"enabled": versioned}
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(100))

    def replace(event: Event) -> None:
        if isinstance(event, Scheduled):
            cloud.store.put("bkt", "thing", DATA[::-1])

    result = fetch(flavour, cloud.url + MEDIA, cloud_storage.policy.with_on_event(replace), stop_after=10**6)
    if versioned:
        assert (result.error, result.content) == (None, DATA)
    else:
        assert isinstance(result.error, flavour.library.RemoteProtocolError)
        assert result.content == DATA[:100]
        assert result.report.text == (
            "the rest cannot be requested: the server answered 404 Not Found instead of sending the rest"
        )


@EVERY
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_compressed_objects(flavour: Flavour, cloud: Cloud, accepted: str) -> None:
    """Stored gzip goes on byte by byte; what is unpacked on its way is fetched anew and compared."""
    packed = gzip.compress(DATA, mtime=0)
    cloud.store.put("bkt", "thing", packed, {"contentEncoding": "gzip"})
    cloud.fault(Fault.truncate(50, reset=True))
    result = fetch(flavour, cloud.url + MEDIA, headers={"Accept-Encoding": accepted})
    assert (result.status, result.content) == (200, DATA)
    assert ("range" in cloud.requests[-1].headers) == (accepted == "gzip" and flavour.name != "aiohttp")


@EVERY
@pytest.mark.parametrize("mark", ["X-Goog-Signature=abc", "GoogleAccessId=a&Signature=abc", "X-Amz-Signature=abc"])
def test_adds_nothing_to_a_signed_url(flavour: Flavour, cloud: Cloud, mark: str) -> None:
    """A signature covers the query, so a signed URL stays as it is; the response still says its generation."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(5))
    assert fetch(flavour, f"{cloud.url}{MEDIA}&{mark}").content == DATA
    assert [request.query for request in cloud.requests] == [f"alt=media&{mark}"] * 2


@EVERY
@pytest.mark.parametrize(
    ("authorization", "added"), [("Bearer abc", True), ("GOOG4-HMAC-SHA256 Credential=a", False), ("AWS a:b", False)]
)
def test_adds_nothing_to_a_request_signed_in_its_header(
    flavour: Flavour, cloud: Cloud, authorization: str, added: bool
) -> None:
    """A signature in the Authorization header covers the query, too; a bearer token does not."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(5))
    assert fetch(flavour, cloud.url + MEDIA, headers={"Authorization": authorization}).content == DATA
    assert ("generation=" in cloud.requests[-1].query) == added


@EVERY
def test_keeps_the_generation_that_was_asked_for(flavour: Flavour, cloud: Cloud) -> None:
    """A request that names a generation is not given another one."""
    item = cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(5))
    assert fetch(flavour, f"{cloud.url}{MEDIA}&generation={item.generation}").content == DATA
    assert cloud.requests[-1].query == f"alt=media&generation={item.generation}"


@EVERY
def test_metadata_is_fetched_anew(flavour: Flavour, cloud: Cloud) -> None:
    """A small response that cannot be continued is requested again, and must begin as the first one did."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.truncate(40), Fault.truncate(20), Fault.truncate(60, reset=True))
    result = fetch(flavour, cloud.url + "/storage/v1/b/bkt/o/thing")
    assert result.response.json()["name"] == "thing"
    assert len(cloud.requests) == 4


@LEFT_BEFORE_ITS_END
def test_an_early_close_leaves_nothing_open(flavour: Flavour, cloud: Cloud) -> None:
    """A reader that stops, before or after a resumption, gives its connection back."""
    cloud.store.put("bkt", "thing", DATA * 1000)
    cloud.fault(Fault.truncate(100_000))
    for stop_after in (10, 200_000):
        result = fetch(flavour, cloud.url + MEDIA, stop_after=stop_after)
        assert (result.error, result.open_connections) == (None, 0)
        assert (DATA * 1000).startswith(result.content)


def broken(*headers: str, end: str = "close") -> Answer:
    """Return a response that ends after seven bytes."""
    return reply(200, SMALL[:7], *headers, length=len(SMALL), end=end)


def chunked(*chunks: bytes, end: str = "keep") -> Answer:
    """Return a response of unknown length; an empty chunk is its end."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body, end)


BREAK = broken('ETag: "one"')


def continued(*chunks: bytes, first: int = 7) -> Answer:
    """Return a response of unknown length that says it has the rest."""
    span = f"Content-Range: bytes {first}-{len(SMALL) - 1}/{len(SMALL)}"
    head = f'HTTP/1.1 206 Part\r\n{span}\r\nETag: "one"\r\nTransfer-Encoding: chunked\r\n\r\n'
    return Answer(head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b"")))


def rest(*headers: str, status: int = 206, first: int = 7, total: int = len(SMALL), body: bytes = SMALL[7:]) -> Answer:
    """Return a response with a part of the object."""
    span = f"Content-Range: bytes {first}-{first + len(body) - 1}/{total}"
    return reply(status, body, span, *headers)


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize(
    ("answers", "whole", "requests"),
    [
        ((BREAK, rest('ETag: "one"')), True, 2),
        ((BREAK, reply(200, SMALL, 'ETag: "one"')), True, 2),
        ((BREAK, reply(200, SMALL, 'ETag: "two"')), False, 2),
        ((BREAK, reply(200, SMALL)), False, 2),
        ((BREAK, rest('ETag: "two"')), False, 2),
        ((BREAK, rest()), False, 3),
        ((BREAK, rest('ETag: "one"', first=8, body=SMALL[8:])), False, 3),
        ((BREAK, rest('ETag: "one"', first=6, body=SMALL[6:])), False, 3),
        ((BREAK, rest('ETag: "one"', total=len(SMALL) + 1)), False, 2),
        ((BREAK, rest('ETag: "one"', body=SMALL[7:-1])), False, 3),
        ((BREAK, rest('ETag: "one"', "Content-Encoding: gzip")), False, 3),
        ((BREAK, reply(206, SMALL[7:], 'ETag: "one"')), False, 3),
        ((BREAK, reply(416, b"")), False, 3),
        ((BREAK, reply(404, b"")), False, 2),
        ((BREAK, reply(401, b"")), False, 2),
        ((BREAK, reply(204)), False, 2),
        ((BREAK, reply(302, b"", "Location: /elsewhere")), False, 2),
        ((broken(), reply(200, SMALL)), True, 2),
        ((broken(end="reset"), reply(200, SMALL + b"!")), False, 2),
        ((broken(), reply(200, b"x" * len(SMALL))), False, 2),
        ((broken('ETag: W/"one"'), reply(200, SMALL, 'ETag: W/"one"')), True, 2),
        ((broken('ETag: W/"one"'), reply(200, SMALL, 'ETag: W/"two"')), False, 2),
        (
            (broken("Accept-Ranges: none", 'ETag: "one"'), reply(200, SMALL, "Accept-Ranges: none", 'ETag: "one"')),
            True, 2,
        ),
        ((broken("Content-Type: text/event-stream"), reply(200, SMALL)), False, 1),
        ((chunked(SMALL[:7], end="close"), chunked(SMALL[:3], SMALL[3:], b"")), True, 2),
        ((chunked(SMALL[:7], end="close"), chunked(SMALL[:3], b"")), False, 2),
        ((chunked(SMALL, end="close"), chunked(SMALL, b"")), True, 2),
    ],
)  # fmt: skip
def test_joins_only_what_belongs_together(
    flavour: Flavour, answers: tuple[Answer, ...], whole: bool, requests: int
) -> None:
    """A second response is used only if it is of the same object and begins where the first one broke off."""
    with Wire(*answers) as wire:
        result = fetch(flavour, wire.url, None, stop_after=10**6)
        assert len(wire.seen) == requests
    if whole:
        assert (result.error, result.content) == (None, SMALL)
    else:
        assert isinstance(result.error, flavour.library.NetworkError | flavour.library.RemoteProtocolError)
        assert result.content == SMALL[:7]
        assert result.report.reason is Reason.BODY
        assert len(result.notes) == 1


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_rest_that_ends_too_early_is_one_more_break(flavour: Flavour) -> None:
    """A response that has fewer bytes than its Content-Range says is not taken for the end of the body."""
    with Wire(BREAK, continued(SMALL[7:9]), continued(first=9), rest('ETag: "one"', first=9, body=SMALL[9:])) as wire:
        assert fetch(flavour, wire.url, None).content == SMALL
        assert [seen.header("range") for seen in wire.seen[1:]] == ["bytes=7-17", "bytes=9-17", "bytes=9-17"]


@EVERY
@LEFT_BEFORE_ITS_END
@pytest.mark.parametrize("surplus", [(SMALL[7:], b"!"), (SMALL[7:] + b"!",)])
def test_a_rest_that_is_too_long_is_no_success(flavour: Flavour, surplus: tuple[bytes, ...]) -> None:
    """If a response has more bytes than its Content-Range says, the surplus is not returned."""
    with Wire(BREAK, continued(*surplus)) as wire:
        result = fetch(flavour, wire.url, None, stop_after=10**6)
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert SMALL.startswith(result.content)
    assert result.report.text == (
        "the rest cannot be requested: the rest goes on after 18 bytes, of which it should be the last ones"
    )


@EVERY
def test_a_head_has_no_body_to_break(flavour: Flavour, cloud: Cloud) -> None:
    """HEAD is retried as a read, and its length promises nothing."""
    cloud.store.put("bkt", "thing", DATA)
    cloud.fault(Fault.status(503))
    result = flavour.call(flavour.transport(rfc9110.policy), "HEAD", cloud.url + MEDIA)
    assert (result.content, result.retries) == (b"", 1)


@EVERY
def test_a_get_whose_header_names_a_post_is_not_sent_again(flavour: Flavour) -> None:
    """A GET whose header asks for a POST is executed once, although its response broke."""
    with Wire(BREAK, rest('ETag: "one"')) as wire:
        result = fetch(flavour, wire.url, None, headers={"X-HTTP-Method-Override": "POST"})
        assert len(wire.seen) == 1
    assert result.report.reason is Reason.UNSAFE


@EVERY
def test_a_body_is_read_without_retries_where_they_are_off(flavour: Flavour) -> None:
    """Retries that are turned off while a body is read are off for it, too."""
    with Wire(BREAK, rest('ETag: "one"')) as wire, forbear.disabled():
        result = fetch(flavour, wire.url, None)
        assert len(wire.seen) == 1
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert forbear.report(result.error) is None


def test_a_connection_is_free_while_a_body_waits_to_go_on(flavour: Flavour) -> None:
    """A pool of one connection suffices: the broken response and each refused one is closed before the wait."""
    answers = (BREAK, reply(503, b"busy"), rest('ETag: "one"'))
    with Wire(*answers) as wire:
        limits = flavour.library.Limits(max_connections=1)
        transport = flavour.transport(transport=flavour.base(limits=limits))
        assert flavour.call(transport, "GET", wire.url).content == SMALL


@EVERY
def test_a_policy_for_errors_has_the_last_word_on_broken_bodies(flavour: Flavour) -> None:
    """A policy that retries only timeouts lets a broken body out; one that retries what broke goes on with it."""
    library = flavour.library
    for on, whole in ((library.TimeoutException, False), (library.TransportError, True)):
        with Wire(BREAK, rest('ETag: "one"')) as wire:
            result = fetch(flavour, wire.url, forbear.retry(on=on))
            assert (result.error is None, len(wire.seen)) == (whole, 1 + whole)


def test_a_break_after_the_last_byte_is_raised(flavour: Flavour) -> None:
    """If no byte is missing, there is nothing to continue, but HTTP/2 would have said the end."""

    def all_of_it() -> Iterator[bytes]:
        yield SMALL
        raise flavour.library.RemoteProtocolError("no end")

    headers = {"Content-Length": str(len(SMALL)), "ETag": '"one"'}
    result = fetch(flavour, "http://localhost", None, transport=flavour.played((200, headers, all_of_it)))
    assert isinstance(result.error, flavour.library.RemoteProtocolError)
    assert result.report.text == "the rest cannot be requested: no byte of it is missing"


def test_a_part_that_cannot_be_pinned_is_fetched_anew_as_a_part(flavour: Flavour) -> None:
    """Without a validator, a part is compared with a second response of the same part, and with nothing else."""
    part = reply(206, SMALL[2:5], f"Content-Range: bytes 2-9/{len(SMALL)}", length=8, end="close")
    for again, whole in (
        (reply(206, SMALL[2:10], f"Content-Range: bytes 2-9/{len(SMALL)}"), True),
        (reply(200, SMALL), False),
    ):
        with Wire(part, again) as wire:
            result = fetch(flavour, wire.url, None, headers={"Range": "bytes=2-9"}, stop_after=10**6)
            assert [seen.header("range") for seen in wire.seen] == ["bytes=2-9"] * 2
        assert (result.error is None, result.content) == (whole, SMALL[2:10] if whole else SMALL[2:5])


def test_reading_on_after_an_error_is_no_success(flavour: Flavour) -> None:
    """A caller that goes on after the break was raised gets the end, and no listener hears of a recovery."""
    events: list[Event] = []
    policy = rfc9110.policy.with_limits(Limits(attempts=1)).with_on_event(events.append)
    with Wire(BREAK) as wire:

        def read(pieces: Iterator[bytes]) -> list[bytes]:
            with pytest.raises(flavour.library.RemoteProtocolError):
                list(pieces)
            return list(pieces)

        async def aread() -> list[bytes]:
            async with flavour.client(flavour.transport(policy)) as client, client.stream("GET", wire.url) as response:
                stream = response.stream._stream  # the client's own generators end with the error
                with pytest.raises(flavour.library.RemoteProtocolError):
                    [piece async for piece in stream]
                return [piece async for piece in stream]

        if flavour.is_async:
            assert flavour.run(aread) == []
        else:
            with flavour.client(flavour.transport(policy)) as client, client.stream("GET", wire.url) as response:
                assert read(response.stream._stream) == []
    assert [type(event) for event in events] == [Failed, GaveUp]
