"""Finding a command by its name, and what comes of names and arguments that make no sense."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.verdict import Safety
from forbear.services.redis import PROMISES, CommandJudgement, classify
from forbear.services.redis.arguments import RULES
from forbear.services.redis.service import commands
from forbear.services.redis.table import UNKNOWN, CommandRow
from forbear_testkit.rows import for_each

_ROWS = commands()
_NAMES = [row.command for row in _ROWS]
_SCRIPTED = {"EVAL", "EVALSHA", "FCALL", "GRAPH.PROFILE", "GRAPH.QUERY", "TFCALL", "TFCALLASYNC"}
"""Commands that run code which may write, and whose errors are whatever that code says."""
_CONTAINERS = {name.partition(" ")[0] for name in _NAMES if " " in name}


def _expected(row: CommandRow) -> CommandJudgement:
    """The answer of a row for a command whose arguments meet no condition."""
    return CommandJudgement(
        "redis",
        row.command,
        row.safety,
        conditions=classify(row.command.split(" ")).conditions,
        repeatable=row.safety is Safety.ALWAYS,
        mutation=row.kind == "write",
        connection=row.kind == "connection",
        response=row.response,
        errors=row.errors,
        depends=row.depends,
        scripted=row.command in _SCRIPTED,
    )


@for_each(_ROWS, "{0.command}")
def test_every_row_is_found_by_every_spelling(row: CommandRow) -> None:
    """As words of their own or as one string, in any case, as text or as bytes, whatever arguments there are."""
    name = row.command
    expected = _expected(row)
    assert len(expected.conditions) == len(row.conditions)
    for command in (
        name.split(" "),
        name.lower().split(" "),
        name.title().encode().split(b" "),
        [name],
        [name.lower().encode()],
        [f" {name} "],
    ):
        assert classify(command) == expected
    if name not in _CONTAINERS and name not in RULES:
        assert classify([*name.split(" "), b"\xff\x00", "", 1.5]) == expected


@pytest.mark.parametrize("name", sorted(_CONTAINERS))
def test_a_container_needs_a_subcommand_it_knows(name: str) -> None:
    """Alone it is never repeated, unless it is a command by itself; with an unheard of subcommand it is not known."""
    alone = classify([name])
    assert alone.repeatable is (name == "COMMAND")
    for unknown in ([name, "UNHEARD"], [f"{name} UNHEARD", "x"], [name, ""], [name, True], [name, None]):
        assert classify(unknown) == UNKNOWN  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "command",
    [
        [],
        [""],
        [b" "],
        ["UNHEARD", "k"],
        ["GETS", "k"],
        ["GE", "T"],
        ["\u017fET", "k", "v"],  # a letter that Python's upper() turns into an S
        [None, "k"],
        [True],
        [1],
        [["GET"], "k"],
        ["\ud800"],
        [b"\xff\xfe"],
        ["GET\x00", "k"],
    ],
    ids=repr,
)
def test_what_is_not_known_is_never_repeated(command: Any) -> None:
    """Not a command, not a name, not even a word."""
    assert classify(command) == UNKNOWN
    assert classify(command, promised=frozenset(PROMISES)) == UNKNOWN  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "scripted"),
    [("EVAL s 0", True), ("FCALL f 0", True), ("GRAPH.QUERY k q", True), ("TFCALL l.f 0", True),
     ("RENAME a b", False), ("LSET l 0 v", False), ("EXEC", False), ("TS.MADD k 1 1", False)],
)  # fmt: skip
def test_only_the_caller_s_own_code_is_a_script(command: str, scripted: bool) -> None:
    """The promise "idempotent" alone makes no script: the error of a RENAME still proves that nothing moved."""
    assert classify(command.split(" ")).scripted is scripted


def test_arguments_in_the_first_string_are_arguments() -> None:
    """redis-py splits the first string, and so does the judgement; case is kept."""
    assert classify(["set k v", "EX", 5]).repeatable
    assert not classify(["set k v", "nx"]).repeatable
    assert classify(["zunionstore D", 1, "d"]).repeatable
    assert not classify(["zunionstore d", 1, "d"]).repeatable


_WORDS = st.one_of(
    st.sampled_from([*_NAMES, "NX", "XX", "GET", "EX", "STORE", "ID", "*", ">", "$", "FIELDS", "STREAMS", "GROUP"]),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.integers(-2, 7),
    st.floats(),
    st.sampled_from([None, True, [], {}, object(), bytearray(b"NX"), memoryview(b"GET")]),
)  # fmt: skip


@given(command=st.lists(_WORDS, max_size=9), name=st.none() | st.sampled_from(_NAMES))
def test_nothing_is_raised_and_nothing_unsafe_is_allowed(command: list[Any], name: str | None) -> None:
    """Whatever comes, the answer follows from the row: never for the unknown, met for what is conditional."""
    given_words = command if name is None else [name, *command]
    judgement = classify(given_words)
    assert judgement.service == "redis"
    if judgement.operation is None:
        assert judgement == UNKNOWN
    if judgement.safety is Safety.NEVER:
        assert not judgement.repeatable
        assert judgement.met is None
    if judgement.safety is Safety.CONDITIONAL:
        assert judgement.repeatable is (judgement.met in judgement.conditions)
    if judgement.safety is Safety.ALWAYS:
        assert judgement.repeatable


@pytest.mark.parametrize(
    "row", [row for row in _ROWS if row.conditions and row.command not in RULES], ids=lambda row: row.command
)
def test_promises_count_only_when_given(row: CommandRow) -> None:
    """A fact that only the caller can know is met by a promise and by nothing else."""
    command = row.command.split(" ")
    assert not classify(command).repeatable
    needed = {name for terms in row.conditions for _, name in terms}
    for promise, meaning in PROMISES.items():
        judgement = classify(command, promised={promise})  # type: ignore[arg-type]
        assert judgement.repeatable is (promise in needed)
        assert judgement.met == (f'promised "{promise}": {meaning}' if promise in needed else None)
