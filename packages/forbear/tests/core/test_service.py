"""Judgements and entries of tables: plain values, cautious by default."""

import pickle

import pytest

from forbear.core.record import Record
from forbear.core.service import Judgement, OperationSet, TableEntry, cure_for, why_not
from forbear.core.verdict import Safety


def test_a_judgement_is_cautious_by_default() -> None:
    """Without further arguments it is a mutation that must not be repeated."""
    judgement = Judgement("s", None, Safety.NEVER)
    assert judgement == Judgement("s", None, Safety.NEVER, (), None, False, (), True, False, None)
    assert judgement.mutation
    assert not judgement.repeatable


@pytest.mark.parametrize(
    ("judgement", "reason"),
    [
        (Judgement("s", "o", Safety.NEVER), "o may have been executed and must not be executed twice"),
        (Judgement("s", None, Safety.NEVER), "the call may have been executed and must not be executed twice"),
        (
            Judgement("s", None, Safety.NEVER, unknown="no such bucket"),
            "the call may have been executed and must not be executed twice (no such bucket)",
        ),
        (
            Judgement("s", "o", Safety.CONDITIONAL, ("a=", "b=")),
            "o may have been executed; it may be repeated only with a= or b=",
        ),
        (Judgement("s", "o", Safety.NEVER, refused="a batch is one unit"), "a batch is one unit"),
    ],
)
def test_the_reason_against_a_repeat(judgement: Judgement, reason: str) -> None:
    """It names the operation and what would allow a repeat."""
    assert why_not(judgement, "the call") == reason


@pytest.mark.parametrize(
    ("judgement", "option", "cure"),
    [
        (Judgement("s", "o", Safety.NEVER), 'safe="o"', '; if that does no harm, vouch for it with safe="o"'),
        (Judgement("s", "o", Safety.NEVER), None, ""),
        (Judgement("s", "o", Safety.NEVER, repeatable=True), 'safe="o"', ""),
        (Judgement("s", "o", Safety.NEVER, session=True), 'safe="o"', ""),
        (Judgement("s", "o", Safety.NEVER, refused="a batch is one unit"), 'safe="o"', ""),
        (Judgement("s", "o", Safety.CONDITIONAL, ("a=",)), 'safe="o"', ""),
    ],
)
def test_the_cure_is_the_users_word(judgement: Judgement, option: str | None, cure: str) -> None:
    """It is said only where a vouch helps, and where no condition is the better cure."""
    assert cure_for(judgement, option) == cure


def test_an_entry_has_what_its_row_says() -> None:
    """An entry without conditions has none, and its page names no operation."""
    entry = TableEntry("op", Safety.ALWAYS, source="page", effect="reads", columns={"id": "op"})
    assert (entry.id, entry.safety, entry.source, entry.effect) == ("op", Safety.ALWAYS, "page", "reads")
    assert (entry.conditions, entry.fields, entry.disputed, entry.maybe_done) == ((), (), (), ())
    assert (entry.rpc, entry.note, entry.documented, entry.is_read) == ("", "", None, False)
    assert entry.columns == {"id": "op"}


@pytest.mark.parametrize(
    "value",
    [
        Judgement("s", "o", Safety.CONDITIONAL, ("c",), "c", True, (412,), False, True, "r"),
        TableEntry(
            "o", Safety.NEVER, source="s", effect="e", columns={}, rpc="p", conditions=("c",), fields=("f",),
            disputed=("d",), documented=(), maybe_done=("412",), is_read=True, note="n",
        ),
    ],
)  # fmt: skip
def test_they_can_be_pickled(value: Record) -> None:
    """A pickled copy is equal, field by field."""
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_set_of_operations_is_a_text_that_its_kind_completes() -> None:
    """Its repr is its name, as users write it; what it holds is the business of a subclass."""
    named = OperationSet("forbear.some")
    assert (named.text, repr(named)) == (named, "forbear.some")
    with pytest.raises(NotImplementedError):
        named("a call")
    with pytest.raises(NotImplementedError):
        named.bind("https://api.example.com")


def test_may_cost() -> None:
    """A call that is billed may have cost money, also if its response was lost; one too many did not."""
    billed = Judgement("llm", "chat", Safety.ALWAYS, repeatable=True, billed=True)
    assert [billed.may_cost(status) for status in (None, 500, 429)] == [True, True, False]
    assert not billed.replace(billed=False).may_cost()
