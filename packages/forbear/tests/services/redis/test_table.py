"""The shipped table: complete and consistent, and what breaks its schema is an error that says where and what."""

from collections import Counter
from pathlib import Path

import pytest

from forbear.core.verdict import Safety
from forbear.services.redis import PROMISES
from forbear.services.redis.arguments import RULES
from forbear.services.redis.service import commands
from forbear.services.redis.table import COLUMNS, CommandRow, load
from forbear_testkit.rows import for_each

_ROWS = commands()


def test_the_table_is_whole() -> None:
    """612 commands; Memorystore blocks 105 of them."""
    assert len(_ROWS) == 612
    assert Counter(row.safety.value for row in _ROWS) == {"always": 439, "conditional": 65, "never": 108}
    assert sum(row.columns["memorystore"] == "blocked" for row in _ROWS) == 105


@for_each(_ROWS, "{0.command}")
def test_every_row_is_consistent(row: CommandRow) -> None:
    """Reads are safe unless they begin at a moment, what is safe does no harm, and what is not says which."""
    if row.kind == "read":
        assert (row.safety is Safety.ALWAYS) is (row.command not in ("XREAD", "TS.READ"))
        assert row.response in ("same", "may differ")
    if row.columns["source"] == "readonly flag":
        assert row.kind == "read"
    assert (row.effect == "none") is (row.safety is Safety.ALWAYS)
    if row.safety is Safety.NEVER:
        assert row.response in ("", "lost")


def test_every_rule_and_promise_is_used() -> None:
    """A rule that no row names would be dead; a promise that none needs would mislead."""
    named = {
        (row.command, name) for row in _ROWS for terms in row.conditions for prefix, name in terms if prefix == "arg"
    }
    assert named == {(command, name) for command, rules in RULES.items() for name in rules}
    promised = {name for row in _ROWS for terms in row.conditions for prefix, name in terms if prefix == "caller"}
    assert promised == set(PROMISES)


_HEADER = ",".join(COLUMNS)
_GOOD = 'GET,read,always,,same,,,"redis, valkey",readonly flag,none,'


def _load(tmp_path: Path, *lines: str, header: str = _HEADER) -> tuple[CommandRow, ...]:
    path = tmp_path / "commands.csv"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return load(path)


def test_each_column_has_its_type(tmp_path: Path) -> None:
    """Every column is read in its own type."""
    rows = _load(
        tmp_path,
        _GOOD,
        "ZADD,write,conditional,arg:no INCR | caller:drift & caller:unique,error: one; two,key,blocked,redis,"
        "JUDGEMENT,counts twice,a note",
    )
    assert rows == (
        CommandRow("GET", "read", Safety.ALWAYS, (), "same", (), "", "none", {}),
        CommandRow(
            "ZADD",
            "write",
            Safety.CONDITIONAL,
            ((("arg", "no INCR"),), (("caller", "drift"), ("caller", "unique"))),
            "may differ",
            ("one", "two"),
            "key",
            "counts twice",
            {},
        ),
    )


_WRITES = "`depends` must be given for writes that may be repeated only, got "
_WORDS = "`command` must be one or two words in upper case, got "
_ONLY = "`safe_if` must be given for conditional commands only, got "
_TERM = "a condition must be arg: and a rule for this command, or caller: and a promise, got "


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("X,reads,always,,same,,,redis,JUDGEMENT,none,", "`kind` must be one of ['connection', 'read', 'write'], got"),
        ("X,read,often,,same,,,redis,JUDGEMENT,none,", "`safety` must be one of ['always', 'conditional', 'never']"),
        ("X,read,always,,same,,no,redis,JUDGEMENT,none,", "`memorystore` must be one of ['', 'blocked'], got 'no'"),
        ("X,read,always,,same,,,nobody,JUDGEMENT,none,", "`listed` must be one of"),
        ("X,read,always,,same,,,redis,me,none,", "`source` must be one of ['JUDGEMENT', 'readonly flag'], got 'me'"),
        ("X,write,always,,same,maybe,,redis,JUDGEMENT,none,", "`depends` must be one of"),
        ("X,write,always,,same,,,redis,JUDGEMENT,none,", _WRITES),
        ("X,read,always,,same,key,,redis,JUDGEMENT,none,", _WRITES),
        ("X,read,always,,same,,,redis,JUDGEMENT,,", "`effect` must not be empty"),
        ("x,read,always,,same,,,redis,JUDGEMENT,none,", _WORDS + "'x'"),
        ("X  Y,read,always,,same,,,redis,JUDGEMENT,none,", _WORDS + "'X  Y'"),
        (",read,always,,same,,,redis,JUDGEMENT,none,", _WORDS + "''"),
        ("X,read,always,,,,,redis,JUDGEMENT,none,", "must be one of ['lost', 'may differ', 'same'], or error:"),
        ("X,read,always,,error: A,,,redis,JUDGEMENT,none,", "or error: and a text in lower case, got 'error: A'"),
        ("X,read,always,,error:,,,redis,JUDGEMENT,none,", "or error: and a text in lower case, got 'error:'"),
        ("X,read,always,arg:y,same,,,redis,JUDGEMENT,none,", _ONLY),
        ("X,write,conditional,,same,key,,redis,JUDGEMENT,harm,", _ONLY),
        ("X,write,conditional,arg:no NX,same,key,,redis,JUDGEMENT,harm,", _TERM + "'arg:no NX'"),
        ("X,write,conditional,caller:luck,same,key,,redis,JUDGEMENT,harm,", _TERM + "'caller:luck'"),
        ("X,write,conditional,q:x,same,key,,redis,JUDGEMENT,harm,", _TERM + "'q:x'"),
        ("X,read,always,,same,,,redis,JUDGEMENT,none,,more", "a row must have one value a column, got ['more'] beyond"),
        (_GOOD, "`command` must be unique"),
    ],
)  # fmt: skip
def test_a_broken_row_is_refused(tmp_path: Path, line: str, why: str) -> None:
    """The error names the file, the line, the command and the rule."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        _load(tmp_path, _GOOD, line)
    assert str(caught.value).startswith(f"commands.csv, line 3 ({line.split(',', maxsplit=1)[0]}): ")
    assert why in str(caught.value)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    """A column too few or too many is an error before any row is read."""
    with pytest.raises(ValueError, match=r"commands\.csv: columns must be"):
        _load(tmp_path, header=_HEADER + ",extra")
