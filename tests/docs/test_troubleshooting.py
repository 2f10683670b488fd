"""docs/troubleshooting.md: every message on the page is one that forbear says."""

import re
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport, install
from forbear_testkit import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SAID = [double or single for double, single in re.findall(r"^\| (?:`` (.+?) ``|`([^`]+)`) \|", PAGE, re.MULTILINE)]


async def coroutine(*_: object) -> None:
    """An async function where a sync one is needed."""


def generator() -> object:
    """A generator function."""
    yield 1


def installed_twice() -> object:
    """Put retries into a client that has them."""
    with httpx.Client() as client:
        return install(install(client))


POLICY = forbear.retry(OSError)
MISTAKES: list[Callable[[], object]] = [
    forbear.retry,
    lambda: forbear.retry(OSError, attempts=None, timeout=None),
    lambda: forbear.retry(OSError, attempt_timeout=3)(len),
    lambda: forbear.retry(OSError, on_event=coroutine),
    lambda: forbear.retry(OSError, budget=forbear.budgets.Budget.per_host())(len),
    lambda: POLICY(generator),
    lambda: POLICY(pytest.fixture(coroutine)),
    lambda: ExitStack().enter_context(POLICY),  # type: ignore[arg-type]
    lambda: POLICY.call(coroutine),
    lambda: RetryTransport(forbear.retry(OSError, repeatable=True)),
    lambda: RetryTransport(forbear.retry(OSError, on_give_up=None)),
    installed_twice,
    lambda: RetryTransport(safe="POST /search"),
]


def test_every_message_has_its_mistake() -> None:
    """The page has as many messages as there are mistakes here."""
    assert len(SAID) == len(MISTAKES)


@pytest.mark.parametrize(("said", "mistake"), [*zip(SAID, MISTAKES, strict=False)], ids=SAID)
def test_a_message_is_said(said: str, mistake: Callable[[], object]) -> None:
    """The mistake raises an error whose text has the words of the page."""
    with pytest.raises((TypeError, ValueError), match=re.escape(said)):
        mistake()


def test_every_code_of_a_note_has_its_section() -> None:
    """A code is an anchor of the page, and the page has no other anchors among the codes."""
    part = PAGE.partition("## When a run gives up")[2].partition("\n## ")[0]
    assert set(re.findall(r"^### (.+)$", part, re.MULTILINE)) == {reason.code for reason in forbear.events.Reason}
