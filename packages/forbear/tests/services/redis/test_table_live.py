"""The table against a real server's own list: its commands, their flags, their arity and their options."""

from collections.abc import Iterator
from typing import Any

import pytest

from forbear.core.verdict import Safety
from forbear.services.redis.arguments import LEAST, OPTIONS, RULES
from forbear.services.redis.service import commands
from forbear_testkit.services.redis.server import Live

_ROWS = {row.command: row for row in commands()}

# Options that a newer Redis has and this server has not, so that it cannot confirm them.
_ELSEWHERE = {
    "SET": {"IFNE", "IFDEQ", "IFDNE"},
    "XADD": {"KEEPREF", "DELREF", "ACKED", "IDMP", "IDMPAUTO"},
    "XREAD": {"MAXCOUNT", "MAXSIZE"},
    "XREADGROUP": {"MAXCOUNT", "MAXSIZE"},
}

# Options by their place instead of their name, or units and values that are spelt like options.
_PLACES = {
    "GEORADIUS": {"M", "KM", "FT", "MI"},
    "GEORADIUSBYMEMBER": {"M", "KM", "FT", "MI"},
    "HEXPIRE": {"FIELDS"},
    "HGETEX": {"FIELDS"},
    "HPEXPIRE": {"FIELDS"},
    "HSETEX": {"FIELDS"},
    "BITFIELD": {"WRAP", "SAT", "FAIL"},
    "CLIENT KILL": {"NORMAL", "MASTER", "PRIMARY", "SLAVE", "REPLICA", "PUBSUB", "YES", "NO"},
    "MIGRATE": {"", "KEYS"},
    "XADD": {"=", "~", "*"},
    "XREAD": {"STREAMS"},
    "XREADGROUP": {"GROUP", "STREAMS"},
}
_SAME_OPTIONS = {
    "GEORADIUSBYMEMBER": "GEORADIUS",
    "HEXPIRE": "EXPIRE",
    "HGETEX": "GETEX",
    "HPEXPIRE": "EXPIRE",
    "PEXPIRE": "EXPIRE",
}


def test_every_command_of_the_server_is_in_the_table(live: Live) -> None:
    """A command that a newer server adds shows up here."""
    assert set(live.commands()) - set(_ROWS) == set()


def test_every_command_listed_for_it_is_there(live: Live) -> None:
    """Valkey lists the commands that the table says it lists; only Sentinel's own commands need a Sentinel."""
    listed = {
        row.command
        for row in commands()
        if "valkey" in row.columns["listed"] and not row.command.startswith("SENTINEL")
    }
    assert listed == set(live.commands())


def test_the_flags_agree(live: Live) -> None:
    """A command that only reads by the server's flags is safe, except XREAD; one that writes is a write here."""
    for name, (_, flags) in live.commands().items():
        row = _ROWS[name]
        if "readonly" in flags:
            assert (row.kind, row.safety is Safety.ALWAYS) == ("read", name != "XREAD"), name
        if "write" in flags:
            assert row.kind == "write", name
        if row.columns["source"] == "readonly flag":
            assert "readonly" in flags, name


def test_the_arity_agrees(live: Live) -> None:
    """No rule is asked about a command that is too short to be one."""
    described = live.commands()
    for name, least in LEAST.items():
        if name in described:
            assert abs(described[name][0]) <= least, name
    assert set(LEAST) == set(RULES)


def _arguments(live: Live, name: str) -> list[Any]:
    (_, documented) = live("COMMAND", "DOCS", name.replace(" ", "|"))
    found = dict(zip(documented[::2], documented[1::2], strict=True))
    arguments: list[Any] = found[b"arguments"]
    return arguments


def _tokens(arguments: list[Any]) -> Iterator[str]:
    for argument in arguments:
        found = dict(zip(argument[::2], argument[1::2], strict=True))
        if b"token" in found:
            yield found[b"token"].decode().strip('"')
        yield from _tokens(found.get(b"arguments", []))


@pytest.mark.parametrize("name", sorted({*OPTIONS, *_SAME_OPTIONS}))
def test_the_options_agree(live: Live, name: str) -> None:
    """An option that a newer server adds shows up here: until a rule knows it, it makes nothing safe."""
    if _ROWS[name].columns["listed"] == "clients":
        return
    tokens = set(_tokens(_arguments(live, name))) - _PLACES.get(name, set())
    if name.startswith("XADD"):
        tokens -= {"=", "~"}
    assert tokens == OPTIONS[_SAME_OPTIONS.get(name, name)].names - _ELSEWHERE.get(name, set())
