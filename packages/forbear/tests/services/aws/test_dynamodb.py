"""Updates of DynamoDB: which may be executed twice (counterexample V2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.services.aws.dynamodb import is_repeatable_update, returns_new_values

VALUES = {
    ":n": {"N": "2"}, ":same": {"N": "2.0"}, ":old": {"N": "1"}, ":s": {"S": "x"}, ":t": {"S": "y"},
    ":set": {"SS": ["a"]}, ":numbers": {"NS": ["1"]}, ":list": {"L": [{"S": "x"}]}, ":true": {"BOOL": True},
}  # fmt: skip


def judge(update: object, condition: object = None, **more: Any) -> bool:
    """Return whether an update with `VALUES` may be executed twice."""
    parameters = {
        "TableName": "t",
        "Key": {"k": {"S": "1"}},
        "UpdateExpression": update,
        "ExpressionAttributeValues": VALUES,
        "ExpressionAttributeNames": {"#a": "a", "#dotted": "a.b"},
        **more,
    }
    if condition is not None:
        parameters["ConditionExpression"] = condition
    return is_repeatable_update(parameters)


@pytest.mark.parametrize(
    "update",
    [
        "SET a = :s",
        "set a = :s, b.c = :n remove d, e.f add g :set delete h :numbers",
        "SET #a = :s",
        "SET #dotted = :s, a = :n",  # one name with a dot, not a path
        "SET a = b",
        "SET a = if_not_exists(a, :s)",
        "SET a = if_not_exists(b, :s)",
        "SET a = if_not_exists(a, b)",
        "SET a = if_not_exists(a, if_not_exists(b, :s))",
        "REMOVE a",
        "ADD a :set",
        "DELETE a :numbers",
    ],
)
def test_the_same_twice(update: str) -> None:
    """Values, sets and removals leave the same item when they are executed again."""
    assert judge(update)


@pytest.mark.parametrize(
    "update",
    [
        "ADD n :n",
        "SET n = n + :n",
        "SET n = :n + n",
        "SET n = if_not_exists(n, :n) + :n",
        "SET n = n - :n",
        "SET l = list_append(l, :list)",
        "SET l[99] = :s",
        "SET a.l[0].b = :s",
        "REMOVE l[0]",
        "SET a = b, b = :s",
        "SET a = b REMOVE b",
        "SET a = b, b.c = :s",
        "SET a = b.c, b = :s",
        "SET a = if_not_exists(b, :s), b = :t",
        "SET a = if_not_exists(a.b, :s)",
        "SET a = if_not_exists(c, b), b = :s",
        "SET a = :s ADD n :n",
        "SET a = a",
    ],
)
def test_not_the_same_twice(update: str) -> None:
    """Counting, appending, and reading what the same expression writes differ the second time."""
    assert not judge(update)


@pytest.mark.parametrize(
    "update",
    [
        None, b"SET a = :s", "", " ", "SET", "SET a", "SET a =", "SET a = :missing", "SET #missing = :s", "SET a = :s,",
        "SET a = :s SET b = :s", "SET a = :s, a = :t", "SET a = :s, a.b = :t", "SET a = (:s)", "REMOVE", "REMOVE a b",
        "ADD a", "ADD a b", "PUT a = :s", "SET a = size(b", "SET a[b] = :s", "SET a = if_not_exists(b)", "SET é = :s",
        "SET a = :s" + ", b = :s" * 5000,
    ],
)  # fmt: skip
def test_not_parsed(update: object) -> None:
    """An expression that cannot be parsed, or that DynamoDB would refuse, is not repeatable."""
    assert not judge(update)


@pytest.mark.parametrize(
    ("update", "condition"),
    [
        ("SET v = :n ADD c :n", "v = :old"),
        ("SET v = :n ADD c :n", "#a = :s AND v = :old"),
        ("SET v = :n, l = :list ADD c :n", "l = :list AND v = :old"),  # lists are not compared
        ("SET v = :n ADD c :n", "(v = :old) OR v < :old"),
        ("SET v = :n ADD c :n", "NOT v = :n"),
        ("SET v = :n ADD c :n", "v <> :same"),
        ("SET v = :n ADD c :n", "v IN (:old, :s)"),
        ("SET v = :n ADD c :n", "v < :n"),
        ("SET v = :n ADD c :n", "v > :n or v <= :old"),
        ("SET v = :n ADD c :n", "attribute_not_exists(v)"),
        ("SET v = :n ADD c :n", "NOT attribute_exists(v)"),
        ("ADD c :n REMOVE lock", "attribute_exists(lock)"),
        ("ADD c :n REMOVE lock", "lock = :s"),
        ("ADD c :n", "attribute_not_exists(k)"),  # the key: the item exists after the write
        ("ADD c :n", "attribute_not_exists(c)"),
        ("SET l = list_append(l, :list), seen = :true", "seen <> :true"),
        ("SET l = list_append(l, :list), seen = :set", "seen <> :set"),
    ],
)
def test_conditions_that_protect(update: str, condition: str) -> None:
    """A condition that the write makes false lets the second execution fail."""
    assert judge(update, condition)


@pytest.mark.parametrize(
    ("update", "condition"),
    [
        ("ADD n :n", "attribute_not_exists(locked)"),
        ("SET v = :n ADD c :n", "v = :n"),
        ("SET v = :n ADD c :n", "v = :same"),  # 2 and 2.0 are one number
        ("SET v = :n ADD c :n", "v = :old OR attribute_exists(k)"),
        ("SET v = :n ADD c :n", "v = :old OR other = :s"),
        ("SET v = :n ADD c :n", "NOT other = :s"),
        ("SET v = :n ADD c :n", "v = other"),
        ("SET v = other ADD c :n", "v = :old"),
        ("SET l[99] = :n", "attribute_not_exists(l[99])"),  # it is appended elsewhere
        ("SET v = :list ADD c :n", "v = :set AND size(v) = :old"),
        ("SET v = :n ADD c :n", "v BETWEEN :old AND :n"),
        ("SET v = :n ADD c :n", "begins_with(v, :s)"),
        ("DELETE s :set ADD c :n", "attribute_exists(s)"),  # the last element takes the attribute with it
        ("REMOVE v ADD c :n", "v <> :s"),
        ("SET v = :n ADD c :n", "v = :old garbage"),
        ("SET v = :n ADD c :n", "v = "),
        ("SET v = :n ADD c :n", "NOT " * 100 + "v = :n"),
        ("SET v = :n ADD c :n", "(" * 5000 + "v = :old" + ")" * 5000),
        ("SET v = :n ADD c :n", 7),
    ],
)
def test_conditions_that_do_not_protect(update: str, condition: object) -> None:
    """A condition that may still hold, or that is not understood, protects nothing."""
    assert not judge(update, condition)


@pytest.mark.parametrize("returned", ["ALL_OLD", "UPDATED_OLD"])
def test_old_values(returned: str) -> None:
    """A second attempt would return its own work as the old values."""
    assert not judge("SET a = :s", ReturnValues=returned)
    assert not judge("SET v = :n", "v = :old", ReturnValues=returned)
    assert not returns_new_values({"ReturnValues": returned})


@pytest.mark.parametrize("returned", ["NONE", "ALL_NEW", "UPDATED_NEW"])
def test_new_values(returned: str) -> None:
    """New values are the same after each attempt."""
    assert judge("SET a = :s", ReturnValues=returned)


@pytest.mark.parametrize("form", ["AttributeUpdates", "Expected", "ConditionalOperator"])
def test_older_forms(form: str) -> None:
    """The forms before expressions are not read."""
    assert not judge("SET a = :s", **{form: {}})


def test_one_text_with_other_values_and_names() -> None:
    """A text is parsed once; each call is judged by its own values and names."""
    for _ in range(2):
        assert judge("ADD a :v", ExpressionAttributeValues={":v": {"SS": ["x"]}})
        assert not judge("ADD a :v", ExpressionAttributeValues={":v": {"N": "1"}})
        assert not judge("ADD a :v", ExpressionAttributeValues={})
        assert judge("SET #a = b", ExpressionAttributeNames={"#a": "a"})
        assert not judge("SET #a = b", ExpressionAttributeNames={"#a": "b"})
        assert not judge("SET #a = b", ExpressionAttributeNames={})
        assert judge("SET v = :n ADD c :n", "v = :old")
        assert not judge(
            "SET v = :n ADD c :n", "v = :old", ExpressionAttributeValues={":n": {"N": "1"}, ":old": {"N": "1"}}
        )
        assert not judge("SET v = :n ADD c :n")


@pytest.mark.parametrize("names", [7, {"#a": 7}, {"#a": ["a"]}, {"#a": None}, {7: "a"}])
def test_names_that_are_none(names: object) -> None:
    """Broken names raise nothing, and make nothing safe."""
    assert not judge("SET #a = :s", ExpressionAttributeNames=names)


def test_long_names() -> None:
    """Names of any length are read; an expression longer than DynamoDB's limit is not."""
    assert judge("SET #a = :s", ExpressionAttributeNames={"#a": "a" * 5000})
    assert judge("SET a = :s" + " " * 4000)
    assert not judge("SET a = :s" + " " * 5000)
    assert not judge("SET v = :n ADD c :n", "v = :old" + " " * 5000)


@pytest.mark.parametrize("value", ["x", {}, {"S": "x", "N": "1"}, None])
def test_values_without_a_type(value: object) -> None:
    """A value that is not in DynamoDB's form, as boto3's resources take them, is not judged before it is serialized."""
    assert not judge("SET a = :v", ExpressionAttributeValues={":v": value})


@pytest.mark.parametrize("number", ["x", "NaN", 7.5, [], None])
def test_numbers_that_are_none(number: object) -> None:
    """A broken number raises nothing and protects nothing."""
    values = {":v": {"N": number}, ":w": {"N": "1"}}
    assert not judge("SET v = :w ADD c :w", "v < :v", ExpressionAttributeValues=values)


WORDS = """SET REMOVE ADD DELETE a b l[0] #a :n :set = , . ( ) + AND OR NOT <> < IN if_not_exists( list_append(
attribute_exists( attribute_not_exists( size("""

words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=14), st.lists(words, max_size=14))
def test_any_words(update: list[str], condition: list[str]) -> None:
    """Any words raise nothing; counting is never repeatable without a condition."""
    assert isinstance(judge(" ".join(update), " ".join(condition)), bool)
    assert not judge(f"ADD n :n {' '.join(update)}")
