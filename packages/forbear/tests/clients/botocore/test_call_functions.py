"""Functions around calls: after a lost response each is executed as often as it may be; aiobotocore has the same."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

import forbear
from forbear.clients.botocore import install
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import FUNCTIONS, LOST, OK
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
