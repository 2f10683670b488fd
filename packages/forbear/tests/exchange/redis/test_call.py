"""Reports keep no arguments of commands and only so much of an error's text."""

import pytest

from forbear.exchange.call_state import Start
from forbear.exchange.redis.call import RedisCall
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.settings import RedisSettings
from forbear.services import redis as service
from forbear.services.redis.errors import hide_arguments
from forbear.testing import virtual_time
from forbear_testkit.growth import grows_linearly

CAUSED = ") of pipeline caused error: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Command # 1 (SET k secret) of pipeline caused error: no", "Command # 1 (SET) of pipeline caused error: no"),
        ("Command # 12 (PING) of pipeline caused error: no", "Command # 12 (PING) of pipeline caused error: no"),
        (f"Command # 1 (SET k {CAUSED}secret{CAUSED}no", f"Command # 1 (SET{CAUSED}no"),
        (f"Command # 1 (SET\nk\nsecret{CAUSED}no", f"Command # 1 (SET{CAUSED}no"),
        (f"Command # 1 ({CAUSED}no", f"Command # 1 ({CAUSED}no"),
        (f"Command # 1 (Command # 2 (secret{CAUSED}no", f"Command # 1 (Command{CAUSED}no"),
        ("Command # 1 (SET k", "Command # 1 (SET k"),
        (f"no{CAUSED}Command # 1 (", f"no{CAUSED}Command # 1 ("),
        (f"Command # {CAUSED}", f"Command # {CAUSED}"),
        ("", ""),
    ],
)
def test_arguments_are_left_out(text: str, expected: str) -> None:
    """The arguments are left out whatever they contain; the name of the command stays."""
    assert hide_arguments(text) == expected


@pytest.mark.parametrize(
    "unit",
    ["a", " ", "(", ")", "Command # ", "Command # 1 (", "Command # 1 (a", CAUSED, f"Command # 1 (a{CAUSED}", "# 1 ("],
)
@pytest.mark.parametrize("before", ["", "Command # 1 ("])
@pytest.mark.parametrize("after", ["", CAUSED])
def test_in_linear_time(unit: str, before: str, after: str) -> None:
    """The time is linear in the length of the text, whatever it repeats."""
    assert grows_linearly(lambda size: before + unit * size + after, hide_arguments, 2_000)


def test_a_huge_error_is_cut() -> None:
    """The run keeps only the beginning of an error response of a megabyte."""
    with virtual_time(seed=1):
        call = RedisCall(RedisSettings(service.policy), describe_command, ("GET", "k"), Start())
        while call.failed(ConnectionError("x" * 1_000_000)) is not None:
            pass
    assert call.report is not None
    assert max(len(attempt.text) for attempt in call.report.attempts) <= 500
