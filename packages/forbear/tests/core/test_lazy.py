"""Lazy exports: names of a package whose modules are loaded on first use."""

import pytest

from forbear.core import verdict
from forbear.core.lazy import exports, late
from forbear.core.record import Record

MODULES, CALLS = {"Verdict": "verdict"}, {"Attempt": "report", "Stop": "decide"}


def test_a_name_is_that_of_its_module() -> None:
    """The module of the package is loaded, and has the name."""
    getattribute, _ = exports("forbear.core", MODULES, CALLS)
    assert getattribute("Verdict") is verdict.Verdict


def test_a_call_returns_a_value() -> None:
    """The value of such a name is what the function returns."""
    getattribute, _ = exports("forbear.core", {}, {"Record": "record"})
    assert getattribute("Record") == Record()


def test_a_name_may_be_another_one_there() -> None:
    """A module exports names of another package, and under other names."""
    getattribute, names = exports("forbear.http", {"Ruling": "verdict:Verdict"}, below="forbear.core")
    assert getattribute("Ruling") is verdict.Verdict
    assert {"Ruling", "__path__"} <= set(names())
    with pytest.raises(AttributeError, match=r"module 'forbear\.http' has no attribute 'Verdict'"):
        getattribute("Verdict")


@pytest.mark.parametrize("calls", [None, {}, {"other": "verdict"}])
def test_unknown_names(calls: dict[str, str] | None) -> None:
    """The error is that of any module."""
    getattribute, _ = exports("forbear.core", {"Verdict": "verdict"}, calls)
    with pytest.raises(AttributeError, match=r"module 'forbear\.core' has no attribute 'nothing'"):
        getattribute("nothing")


def test_names_are_listed() -> None:
    """`dir()` shows every name, sorted, whether it is loaded or not, and what the package has without them."""
    listed = exports("forbear.core", MODULES, CALLS)[1]()
    assert listed == sorted(listed)
    assert {"Attempt", "Stop", "Verdict", "__doc__", "__name__"} <= set(listed)
    assert {"a", "b"} <= set(exports("forbear.core", {"b": "x", "a": "x"})[1]())


def test_a_name_may_be_a_module() -> None:
    """A star stands for the module itself."""
    getattribute, _ = exports("forbear.core", {"verdicts": "verdict:*"})
    assert getattribute("verdicts") is verdict


def test_a_late_class_takes_its_own_place() -> None:
    """The first call loads its module, makes an object and rebinds the name."""
    names: dict[str, object] = {}
    names["Stop"] = make = late(names, "Record", "forbear.core.record")
    assert make() == Record()
    assert names == {"Stop": make, "Record": Record}
