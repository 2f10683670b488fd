"""Presets: their figures, and that they are what the source pages and their reasons ask for."""

from typing import Any

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.presets import PRESETS, Preset, preset


def longest(name: str, retries: int) -> list[float]:
    """The longest first waits of a preset."""
    return [PRESETS[name].backoff.delay(n, 1.0, None) for n in range(retries)]


def test_the_figures() -> None:
    """Each preset has the limits and the waits that the guide promises."""
    assert {name: (each.limits.attempts, each.limits.timeout) for name, each in PRESETS.items()} == {
        "interactive": (4, 10),
        "mobile": (None, 1800),
        "ci": (8, 300),
        "batch": (None, 3600),
    }
    assert longest("interactive", 3) == [0.5, 1, 2]
    assert longest("mobile", 12) == [2, 3, 4.5, 6.75, 10.125, *(2 * 1.5**n for n in range(5, 11)), 120]
    assert longest("ci", 7) == [1, 2, 4, 8, 16, 32, 32]
    assert longest("batch", 16) == [*(2 * 1.4**n for n in range(15)), 300]


@pytest.mark.parametrize("name", PRESETS)
def test_each_has_a_limit_jitter_and_a_reason(name: str) -> None:
    """No preset runs forever or lets clients retry in step, and each gives its reason in whole sentences."""
    chosen = preset(name)
    assert chosen is PRESETS[name]
    assert chosen.name == name
    assert isinstance(chosen.backoff, Exponential)
    assert chosen.backoff.jitter in {"full", "equal"}
    assert (chosen.limits.attempts, chosen.limits.timeout) != (None, None)
    assert chosen.reason.endswith(".")
    assert len(chosen.reason.split()) > 10


def test_mobile_clients_retry_more_and_longer() -> None:
    """The page: "clientes móveis ... podem precisar fazer mais novas tentativas e por intervalos maiores"."""
    mobile, desktop = PRESETS["mobile"], PRESETS["interactive"]
    assert (mobile.limits.timeout or 0) > (desktop.limits.timeout or 0)
    assert all(mobile.backoff.delay(n, 0.0, None) > desktop.backoff.delay(n, 0.0, None) for n in range(9))


@pytest.mark.parametrize(("name", "error"), [("perl", ValueError), ("", ValueError), (None, TypeError), (3, TypeError)])
def test_unknown_names(name: Any, error: type[Exception]) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises(error, match="`name` must be") as raised:
        preset(name)
    assert repr(name) in str(raised.value)
    assert "mobile" in str(raised.value)


def test_a_preset_is_a_value() -> None:
    """Two presets with the same parts are equal."""
    parts = ("x", Limits(), Exponential(), "why")
    assert Preset(*parts) == Preset(*parts)
