"""Reading a table: what breaks the schema is an error that says where and what."""

from pathlib import Path

import pytest

from forbear.core.verdict import Safety
from forbear.tables.table import COLUMNS, Row, Rule, load

HEADER = ",".join(("id", "verb", *COLUMNS[1:]))
ONLY = "`safe_if` must be given for conditional operations only, got "
GRAMMAR = "a condition must be one of q, h, b, !b, x, f, !f, const, a colon and a name, got "
GOOD = "a.get,GET,always,,,always,,page,none,"


def _load(tmp_path: Path, *lines: str, header: str = HEADER) -> tuple[Row, ...]:
    path = tmp_path / "table.csv"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return load(path, ("verb",))


def test_each_column_has_its_type(tmp_path: Path) -> None:
    """Every column is read in its own type."""
    rows = _load(
        tmp_path,
        GOOD,
        "a.put,PUT,conditional,q:x|b:y,h:If-Match,q:x|h:If-Match,412|409,JUDGEMENT,a lost update,a note",
        "a.add,POST,never,,q:x,,,tests,two of them,",
        'a.ban,POST,never,,,never,,"page, tests",two of them,',
    )
    q, b, h = (("q", "x"),), (("b", "y"),), (("h", "If-Match"),)
    assert rows == (
        Row("a.get", ("GET",), Rule(Safety.ALWAYS), (), Rule(Safety.ALWAYS), (), "none", {}),
        Row(
            "a.put", ("PUT",), Rule(Safety.CONDITIONAL, (q, b)), (h,), Rule(Safety.CONDITIONAL, (q, h)), ("412", "409"),
            "a lost update", {},
        ),
        Row("a.add", ("POST",), Rule(Safety.NEVER), (q,), None, (), "two of them", {}),
        Row("a.ban", ("POST",), Rule(Safety.NEVER), (), Rule(Safety.NEVER), (), "two of them", {}),
    )  # fmt: skip
    assert [(row.columns["source"], row.columns["note"]) for row in rows] == [
        ("page", ""), ("JUDGEMENT", "a note"), ("tests", ""), ("page, tests", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a.x,GET,maybe,,,always,,page,none,", "`safety` must be one of always, conditional, never, got 'maybe'"),
        ("a.x,GET,,,,always,,page,none,", "`safety` must be one of always, conditional, never, got ''"),
        ("a.x,GET,always,q:a,,always,,page,none,", ONLY + "'q:a' for always"),
        ("a.x,GET,never,q:a,,always,,page,none,", ONLY + "'q:a' for never"),
        ("a.x,GET,conditional,,,always,,page,none,", ONLY + "'' for conditional"),
        ("a.x,GET,conditional,x,,always,,page,none,", GRAMMAR + "'x'"),
        ("a.x,GET,always,,y,always,,page,none,", GRAMMAR + "'y'"),
        ("a.x,GET,always,,,sometimes,,page,none,", GRAMMAR + "'sometimes'"),
        ("a.x,,always,,,always,,page,none,", "`verb` must not be empty"),
        ("a.x,GET,always,,,always,,,none,", "`source` must not be empty"),
        ("a.x,GET,always,,,always,,page,,", "`effect` must not be empty"),
        ("a.x,GET,always", "`source` must not be empty"),
        ("a.x,GET,always,,,always,,page,none,note,more", "a row must have one value a column, got ['more'] beyond"),
        ("a.get,GET,always,,,always,,page,none,", "`id` must be unique"),
    ],
)  # fmt: skip
def test_a_broken_row_is_refused(tmp_path: Path, line: str, why: str) -> None:
    """The text names the file, the line, the operation and the rule."""
    with pytest.raises(ValueError, match="must") as caught:
        _load(tmp_path, GOOD, line)
    assert str(caught.value).startswith(f"table.csv, line 3 ({line.partition(',')[0]}): {why}")


def test_a_row_without_a_name_is_refused(tmp_path: Path) -> None:
    """The line is named where the operation cannot be."""
    with pytest.raises(ValueError, match=r"table.csv, line 2 \(\): `id` must not be empty"):
        _load(tmp_path, ",GET,always,,,always,,page,none,")


@pytest.mark.parametrize("header", ["id,safety", f"{HEADER},surprise", HEADER.replace("verb", "method")])
def test_other_columns_are_refused(tmp_path: Path, header: str) -> None:
    """A missing, surplus or misnamed column is an error before any row is read."""
    with pytest.raises(ValueError, match=r"table.csv: columns must be \['disputed_if', .*, got"):
        _load(tmp_path, GOOD, header=header)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """A file without a header has no columns."""
    with pytest.raises(ValueError, match=r"table.csv: columns must be .* got \[\]"):
        load(_empty(tmp_path), ("verb",))


def _empty(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.touch()
    return path


def test_some_columns_of_a_service_may_be_empty(tmp_path: Path) -> None:
    """They come after the others."""
    header = ",".join(("id", "verb", "hint", *COLUMNS[1:]))
    path = tmp_path / "table.csv"
    path.write_text(
        f"{header}\na.get,GET,,always,,,always,,page,none,\na.x,PUT,h,never,,,,,page,x,\n", encoding="utf-8"
    )
    assert [row.where for row in load(path, ("verb",), ("hint",))] == [("GET", ""), ("PUT", "h")]
    with pytest.raises(ValueError, match="`hint` must not be empty"):
        load(path, ("verb", "hint"))


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        (GOOD, True),
        ("a.x,GET,always,,,,,page,a second one,", False),
        ("a.x,GET,always,,,,404,page,none,", False),
        ("a.x,GET,never,,,,,page,none,", False),
    ],
)
def test_what_a_read_is(tmp_path: Path, line: str, reads: bool) -> None:
    """Always safe, without any effect, and never done before."""
    assert _load(tmp_path, line)[0].is_read is reads
