"""docs/curl.md: its lists of options, variables and exit codes are those of the code."""

import re

import pytest

from forbear.answers import curl
from forbear_testkit import ROOT
from forbear_transfer.cli.curl import errors, settings
from forbear_transfer.cli.curl.output import VARIABLES

PAGE = (ROOT / "docs" / "curl.md").read_text(encoding="utf-8")


def long_names(text: str) -> set[str]:
    """Return the options that a text names in backticks, by their long names."""
    words = re.findall(r"`--?([\w#.-]+)[^`]*`", text)
    return {curl._LONG_NAMES[word] if len(word) == 1 else word for word in words}


def test_the_options_that_are_followed() -> None:
    """The table has every option that is read or followed, aliases aside, and globbing's switch."""
    followed = {*curl._READ, *curl._READ_FLAGS, *settings._FLAGS, *settings._VALUES, *settings._PARSERS, "cookie"}
    table = PAGE.partition("| followed | |")[2].partition("\n\n")[0]
    assert long_names(table) == (followed - {"data-ascii"}) | {"globoff"}


def test_the_options_that_are_harmless() -> None:
    """The list has every option without effect, but globbing's switch, which is in the table."""
    listed = PAGE.partition("These options are harmless")[2].partition("\n\n")[0]
    assert long_names(listed) == settings._HARMLESS - {"globoff"}


def test_the_variables() -> None:
    """The list has every variable of `-w`."""
    listed = PAGE.partition("`-w` knows the variables")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(VARIABLES)


def test_the_exit_codes() -> None:
    """The table has every code that an error can have."""
    table = PAGE.partition("| code | meaning |")[2].partition("\n\n")[0]
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert listed >= {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}


@pytest.mark.parametrize(("name", "value"), [("connect", settings.CONNECT_TIMEOUT), ("stall", settings.STALL_TIMEOUT)])
def test_the_time_limits(name: str, value: float) -> None:
    """The page names the default limits."""
    assert f"{value:g} s" in PAGE
