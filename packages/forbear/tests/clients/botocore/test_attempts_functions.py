"""Functions around calls: after a lost response each is executed as often as it may be; aiobotocore has the same."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, NoCredentialsError, ParamValidationError

import forbear
from forbear.clients._botocore.attempts import AwsAttempts
from forbear.clients.botocore import install
from forbear.services import aws as service_of_aws
from forbear.services.aws.vouch import AwsVouch
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import COUNT, FUNCTIONS, LOST, OK
from forbear_testkit.clients.wire import Wire

OUTER = forbear.retry(on=forbear.transient, attempts=3, timeout=60, retry_exhausted=True)


def decorate(call: Callable[[], object]) -> None:
    """Call a decorated function."""
    OUTER(call)()


def loop(call: Callable[[], object]) -> None:
    """Call in a block."""
    for attempt in OUTER:
        with attempt:
            call()


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_lost_response(case: str) -> None:
    """A call is repeated if it may be, and only then; a token counts where forbear fills it."""
    service, method, parameters, with_ours, plain = FUNCTIONS[case]
    script = [answer for times in (plain, plain, with_ours, with_ours) for answer in (LOST, OK)[:times]]
    with virtual_time(), Wire(*script) as server:
        client = aws.client(service, server.url, attempts=1)

        def call() -> Any:
            return getattr(client, method)(**parameters)

        for times, prepare in ((plain, None), (with_ours, install)):
            if prepare is not None:
                prepare(client, attempts=1)
            for form in (decorate, loop):
                server.seen.clear()
                if times == 1:
                    with pytest.raises(BotoCoreError) as caught:
                        form(call)
                    assert f"{service}." in caught.value.__notes__[0]
                else:
                    form(call)
                assert len(server.seen) == times


class Unsigned:
    """Makes a client fail to sign its requests, as without credentials, from attempt number `first` on."""

    def __init__(self, client: Any, first: int = 1) -> None:
        self.first, self.count = first, 0
        client.meta.events.register("before-sign.dynamodb", self)

    def __call__(self, **_: Any) -> None:
        self.count += 1
        if self.count >= self.first:
            raise NoCredentialsError


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "plain"])
@pytest.mark.parametrize("kind", [ParamValidationError, NoCredentialsError])
def test_what_was_never_sent(kind: type[BotoCoreError], ours: bool) -> None:
    """An error before the request is sent says nothing about a repeat, whether it is raised or caught."""
    calls: list[str] = []
    with virtual_time(), Wire() as server:
        client = aws.client("dynamodb", server.url)
        if ours:
            install(client)
        if kind is NoCredentialsError:
            Unsigned(client)

        @forbear.retry(on=(kind, ConnectionError), attempts=3)
        def count(catches: bool) -> None:
            calls.append("count")
            try:
                client.update_item(**{**COUNT, "Key": COUNT["Key"] if kind is NoCredentialsError else 7})
            except kind:
                if not catches:
                    raise
            raise ConnectionError("of another service")

        with pytest.raises(kind):
            count(catches=False)
        with pytest.raises(ConnectionError):
            count(catches=True)
        assert (len(calls), len(server.seen)) == (6, 0)


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "plain"])
def test_a_repeat_that_cannot_be_signed(ours: bool) -> None:
    """Credentials that end after a lost attempt prove nothing about it."""
    with virtual_time(), Wire(LOST) as server:
        client = aws.client("dynamodb", server.url, attempts=2)
        if ours:
            install(client, safe="dynamodb.UpdateItem")
        Unsigned(client, 2)

        @forbear.retry(on=NoCredentialsError, attempts=3)
        def count() -> None:
            client.update_item(**COUNT)

        with pytest.raises(NoCredentialsError):
            count()
        assert len(server.seen) == 1


class _AsyncFile:
    async def read(self) -> bytes:
        return b""

    async def seek(self, position: int) -> int:
        return position

    async def tell(self) -> int:
        return 0

    def __aiter__(self) -> Any:
        return self


def test_async_files_are_not_rewound() -> None:
    """A file that is read asynchronously cannot be rewound by a handler, so it is not sent again."""
    model = aws.client("s3", "http://localhost").meta.service_model.operation_model("PutObject")
    call = AwsAttempts(service_of_aws.policy, AwsVouch(), model, {"Body": _AsyncFile()}, awaits=True)
    assert not call.rewind()
