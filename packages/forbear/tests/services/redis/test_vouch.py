"""The user's word about commands: which names are right, which commands they cover, alone and together."""

import pytest

from forbear.services.redis.batch import classify_many, classify_transaction
from forbear.services.redis.service import classify, commands, examine
from forbear.services.redis.table import CommandJudgement
from forbear.services.redis.vouch import UNVOUCHED, apply_vouch, option_for, safe_commands


def judged(line: str, *safe: str) -> CommandJudgement:
    """Return the judgement on a command in a line, with the user's word."""
    judgement, words = examine(line.split(), frozenset())
    return apply_vouch(judgement, words, safe_commands(safe))


def together(lines: str, *safe: str) -> bool:
    """Return whether the commands in `lines`, separated by semicolons, may be repeated together."""
    return all(
        one.repeatable for one in classify_many([line.split() for line in lines.split(";")], safe=frozenset(safe))
    )


@pytest.mark.parametrize(
    ("safe", "names"),
    [
        ("INCR", {"INCR"}),
        ("incr", {"INCR"}),
        (" client  kill ", {"CLIENT KILL"}),
        (["XADD", "Object Freq", "EVALSHA"], {"XADD", "OBJECT FREQ", "EVALSHA"}),
        ("COMMAND", {"COMMAND"}),
        ("MYMODULE.RUN", {"MYMODULE.RUN"}),
        ({"GET"}, {"GET"}),
        ((), set()),
    ],
)
def test_names(safe: str | list[str], names: set[str]) -> None:
    """They are accepted in any case; those of modules that no table knows, too."""
    assert safe_commands(safe) == names == safe_commands(names)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "names of commands, such as"),
        ("SET k v", "names of commands, such as"),
        ("IN*", "names of commands, such as"),
        ("POST https://a.example/x", "names of commands, such as"),
        ("LPUSH mylist", 'without arguments, such as "LPUSH"'),
        ("INCRR", 'is it "INCR"?'),
        ("xad", 'is it "XADD"?'),
        ("JSON.STE", 'is it "JSON.SET"?'),
        ("OBJECT FREK", 'is it "OBJECT FREQ"?'),
        ("CLIENT", 'a subcommand as well, such as "CLIENT '),
        ("EXEC", "must not list EXEC"),
        ("watch", "must not list WATCH"),
    ],
)
def test_wrong_names(name: str, words: str) -> None:
    """The error names the parameter, the rule, and what to write."""
    with pytest.raises(ValueError, match="`safe` must ") as caught:
        safe_commands([name])
    assert words in str(caught.value)


@pytest.mark.parametrize("safe", [7, None, [b"INCR"], [None]])
def test_wrong_types(safe: object) -> None:
    """Anything but texts is refused."""
    with pytest.raises(TypeError, match="`safe` must"):
        safe_commands(safe)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("line", "safe", "covered"),
    [
        ("INCR k", "INCR", True),
        ("incr k", "INCR", True),
        ("INCRBY k 1", "INCR", True),
        ("DECRBY k 1", "DECR", True),
        ("INCRBY k 2", "INCR", False),
        ("INCRBY k 1", "DECR", False),
        ("INCR k", "INCRBY", False),
        ("CLUSTER FAILOVER", "CLUSTER FAILOVER", True),
        ("CLUSTER BUMPEPOCH", "CLUSTER FAILOVER", False),
        ("SET k v NX", "SET", True),
        ("EVALSHA abc 0", "EVALSHA", True),
        ("EVAL abc 0", "EVALSHA", False),
        ("MYMODULE.RUN k", "MYMODULE.RUN", True),
        ("MYMODULE.STOP k", "MYMODULE.RUN", False),
        ("DEBUG SLEEP 1", "DEBUG SLEEP", True),
        ("DEBUG RELOAD", "DEBUG SLEEP", False),
    ],
)
def test_what_a_name_covers(line: str, safe: str, covered: bool) -> None:
    """A command is covered by its own name; INCRBY by 1 also by INCR, because `incr()` sends it."""
    judgement = judged(line, safe)
    assert (judgement.repeatable, judgement.vouched) == (covered, covered)


def test_the_judgement_is_only_raised() -> None:
    """A judgement stays as it is without a vouch, if it is refused, and if it is repeatable already."""
    strict = classify(["INCR", "k"])
    safe = frozenset({"INCR", "GET"})
    assert apply_vouch(strict, ["INCR", "k"], UNVOUCHED) is strict
    refused = strict.replace(refused="for a reason")
    assert apply_vouch(refused, ["INCR", "k"], safe) is refused
    read = classify(["GET", "k"])
    assert apply_vouch(read, ["GET", "k"], safe) is read


@pytest.mark.parametrize(
    ("lines", "safe", "repeatable"),
    [
        ("INCR a;INCR b", "INCR", True),
        ("INCR a;INCR a;GET a", "INCR", True),
        ("LPUSH l x;LPUSH l y;PUBLISH c m", "LPUSH PUBLISH", True),
        ("SET a 1;INCR a", "INCR", True),
        ("INCR a;LPUSH l x", "INCR", False),
        ("LPOP l;SET lock 1", "LPOP", True),
        ("LPOP l;LPUSH l x", "LPOP LPUSH", False),
        ("LMOVE a b LEFT LEFT;SET b 1", "LMOVE", False),
        ("COPY a b REPLACE;INCR a", "INCR", False),
        ("FLUSHDB", "FLUSHDB", True),
        ("FLUSHDB;SET a 1", "FLUSHDB", False),
        ("EVALSHA abc 0;GET a", "EVALSHA", True),
        ("EVALSHA abc 0;SET a 1", "EVALSHA", False),
        ("MYMODULE.RUN a;GET a", "MYMODULE.RUN", True),
        ("MYMODULE.RUN a;SET b 1", "MYMODULE.RUN", False),
        ("MULTI;INCR a;EXEC", "INCR", True),
        ("MULTI;INCR a;LPUSH l x;EXEC", "INCR", False),
        ("WATCH a;MULTI;INCR a;EXEC", "INCR", True),
    ],
)
def test_together(lines: str, safe: str, repeatable: bool) -> None:
    """A vouch is about a command by itself: its outcome must not depend on another write beside it."""
    assert together(lines, *safe.split()) is repeatable
    assert not together(lines)


def test_transactions() -> None:
    """EXEC is vouched for if a queued command is; after a WATCH a vouch changes nothing."""
    queued = [["INCR", "a"], ["SET", "b", "1"]]
    safe = frozenset({"INCR"})
    execute = classify_transaction(queued, safe=safe)
    assert (execute.repeatable, execute.vouched) == (True, True)
    assert not classify_transaction(queued).repeatable
    watched = classify_transaction(queued, safe=safe, watched=True)
    assert (watched.repeatable, watched.vouched) == (False, False)
    assert not classify_transaction([["SET", "b", "1"]], safe=safe).vouched


def test_the_cure_cures() -> None:
    """Pasted into the client, the words in the note make any command of the table repeatable."""
    helped = 0
    for row in commands():
        words = row.command.split()
        judgement = classify(words)
        cure = option_for(judgement, words)
        if judgement.repeatable or cure is None:
            continue
        name = cure.removeprefix('safe="').removesuffix('"')
        assert judged(row.command, name).vouched, row.command
        helped += 1
    assert helped > 100


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ("INCRBY k 1", 'safe="INCRBY"'),
        ("cluster failover", 'safe="CLUSTER FAILOVER"'),
        ("mymodule.run k", 'safe="MYMODULE.RUN"'),
        ("EVALSHA abc 0", None),
        ("EXEC", None),
        ("MULTI", None),
        ("CLIENT", None),
        ("CLIENT EXPLODE", None),
        ("s3cr3t/word k", None),
    ],
)
def test_cures(line: str, cure: str | None) -> None:
    """There is none where a vouch does not help, or where the first word may be no name."""
    assert option_for(classify(line.split()), line.split()) == cure
