"""Types of `forbear.install` and `on_give_up`: mypy and basedpyright check this file, pytest runs it."""

from typing import assert_type

import httpx
import requests

import forbear


def test_install_keeps_the_type() -> None:
    """The client is the same object, and checkers know it."""
    with httpx.Client() as client, requests.Session() as session:
        assert_type(forbear.install(client, attempts=3, timeout=30), httpx.Client)
        assert_type(forbear.install(session, forbear.retry(forbear.transient)), requests.Session)


@forbear.retry(OSError, attempts=1, on_give_up=None)
def lookup(key: str) -> str:
    """Fail."""
    raise OSError(key)


def test_on_give_up_changes_the_type() -> None:
    """A function with `on_give_up=None` may return None."""
    assert_type(lookup("a"), str | None)
    assert lookup("a") is None
