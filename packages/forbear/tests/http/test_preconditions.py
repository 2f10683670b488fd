"""Preconditions: only what a server must understand and enforce counts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.http import preconditions

NAME = "ifGenerationMatch"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b", "/a/b", ""),
        ("/a?x=1", "/a", "x=1"),
        ("/a?x=1?y=2", "/a", "x=1?y=2"),
        ("?x", "", "x"),
        ("", "", ""),
        ("/a%3Fb?c", "/a%3Fb", "c"),
    ],
)
def test_a_target_is_split_at_its_first_question_mark(target: str, path: str, query: str) -> None:
    """Path and query stay percent-encoded."""
    assert preconditions.split(target) == (path, query)


@pytest.mark.parametrize(
    ("target", "cut"), [("/a?b=c", False), ("/a%23?b=%23", False), ("/a#?b", True), ("/a?b=#c", True)]
)
def test_a_target_with_a_fragment_may_be_cut(target: str, cut: bool) -> None:
    """Wherever the mark is; an escaped one is a plain character."""
    assert preconditions.is_cut(target) is cut


@pytest.mark.parametrize(
    ("query", "present"),
    [
        ("ifGenerationMatch=0", True),
        ("ifGenerationMatch=1700000000000000", True),
        ("alt=json&ifGenerationMatch=5", True),
        ("ifGenerationMatch=5&alt=json", True),
        ("ifGenerationMatch=%35", True),
        ("ifGeneration%4Datch=1", True),
        ("if%47eneration%4datch=%31", True),
        ("ifGenerationMatch=5&ifGenerationMatch=5", True),
        ("ifGenerationMatch=5&if%47enerationMatch=%35", True),
        ("ifGenerationMatch=" + "9" * 6000, True),
        ("", False),
        ("ifGenerationMatch", False),
        ("ifGenerationMatch=", False),
        ("ifGenerationMatch=abc", False),
        ("ifGenerationMatch=-1", False),
        ("ifGenerationMatch=+1", False),
        ("ifGenerationMatch=%2B1", False),
        ("ifGenerationMatch=1.0", False),
        ("ifGenerationMatch=1%20", False),
        ("ifGenerationMatch=0x1", False),
        ("ifGenerationMatch=1_0", False),
        ("ifGenerationMatch=%D9%A3", False),
        ("ifGenerationMatch=²", False),
        ("ifGenerationMatch=5;alt=json", False),
        ("alt=json;ifGenerationMatch=5", False),
        ("ifGenerationMatch=5&ifGenerationMatch=6", False),
        ("ifGenerationMatch=5&ifGenerationMatch=", False),
        ("ifGenerationMatch=5&ifGenerationMatch", False),
        ("ifGenerationMatch=&ifGenerationMatch=5", False),
        ("ifGenerationMatch=5&ifGeneration%4Datch=6", False),
        ("ifgenerationmatch=5", False),
        ("IFGENERATIONMATCH=5", False),
        ("if_generation_match=5", False),
        ("ifGenerationNotMatch=5", False),
        ("ifMetagenerationMatch=5", False),
        ("ifSourceGenerationMatch=5", False),
        ("xifGenerationMatch=5", False),
        ("ifGenerationMatchx=5", False),
        ("name=ifGenerationMatch=5", False),
        ("name=ifGenerationMatch%3D5", False),
        ("name=a%26ifGenerationMatch=5", False),
        (" ifGenerationMatch=5", False),
    ],
)
def test_an_integer_parameter_is_present(query: str, present: bool) -> None:
    """A parameter counts as any decimal integer, 0 included, under exactly its own decoded name."""
    assert _has_integer(query, NAME) is present


def _has_integer(query: str, name: str) -> bool:
    value = preconditions.value(query, name)
    return value is not None and preconditions.is_integer(value)


@pytest.mark.parametrize(
    ("text", "positive"),
    [("1", True), ("10", True), ("01", True), ("9" * 6000, True), ("0", False), ("000", False)],
)
def test_0_is_no_identifier(text: str, positive: bool) -> None:
    """0 identifies nothing, so it is no condition."""
    assert preconditions.is_integer(text)
    assert preconditions.is_positive(text) is positive


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1 ", "0x1", "1_0", "²", "٣", "a"])
def test_no_integers(text: str) -> None:
    """Only ASCII digits count."""
    assert not preconditions.is_integer(text)
    assert not preconditions.is_positive(text)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("c8b4a1de-0000-4000-8000-000000000001", True),
        ("C8B4A1DE-0000-4000-8000-000000000001", True),
        ("00000000-0000-0000-0000-000000000001", True),
        ("00000000-0000-0000-0000-000000000000", False),
        ("c8b4a1de000040008000000000000001", False),
        ("c8b4a1de-0000-4000-80000-00000000001", False),
        ("c8b4a1de-0000-4000-8000-00000000000g", False),
        ("X8b4a1de-0000-4000-8000-000000000001", False),
        ("c8b4a1de-0000-4000-8000-00000000000²", False),
        ("{c8b4a1de-0000-4000-8000-00000000001}", False),
        ("c8b4a1de-0000-4000-8000-000000000001-", False),
        ("", False),
        ("----", False),
    ],
)
def test_a_uuid_counts_in_its_usual_spelling(text: str, valid: bool) -> None:
    """A UUID counts in its usual spelling; that of zeros only names nothing."""
    assert preconditions.is_uuid(text) is valid


@pytest.mark.parametrize(
    ("query", "values", "value"),
    [
        ("", [], None),
        ("b=1", [], None),
        ("b=%41", [], None),
        ("b%41=1&%62=2", [], None),
        ("a", [""], ""),
        ("a=", [""], ""),
        ("a=1=2", ["1=2"], "1=2"),
        ("a=1&b=2&a=3", ["1", "3"], None),
        ("a=x&%61=%78", ["x", "x"], "x"),
        ("a=+", ["+"], "+"),
        ("a=%ff", ["\ufffd"], "\ufffd"),
        ("a=%zz", ["%zz"], "%zz"),
    ],
)
def test_values_of_a_parameter_are_decoded_in_order(query: str, values: list[str], value: str | None) -> None:
    """All values are returned in order, decoded; the one value only if they agree."""
    assert preconditions.values(query, "a") == values
    assert preconditions.value(query, "a") == value


@given(st.text(max_size=60), st.sampled_from([NAME, "generation", "a"]))
def test_no_query_raises(query: str, name: str) -> None:
    """Any text can stand after the question mark."""
    assert _has_integer(query, name) in (True, False)


@given(st.integers(0, 2**63 - 1), st.lists(st.sampled_from(list(enumerate(NAME)))))
def test_an_encoded_name_is_the_same_name(number: int, encoded: list[tuple[int, str]]) -> None:
    """Percent-encoding any letters of a parameter changes nothing."""
    letters = list(NAME)
    for index, letter in encoded:
        letters[index] = f"%{ord(letter):02X}"
    assert _has_integer(f"{''.join(letters)}={number}", NAME)


@pytest.mark.parametrize(
    ("value", "tag", "strong"),
    [
        ('"abc"', True, True),
        ('"a", "b"', True, True),
        ('"a","b"', True, True),
        (' "a"\t', True, True),
        ("abc", True, False),
        ("CKih16GjycICEAE=", True, False),
        ('W/"abc"', True, False),
        ('w/"abc"', True, False),
        ('"a", W/"b"', True, False),
        ('"a", b', True, False),
        ('"a",', True, False),
        ('"a"b"', True, False),
        ('"a', True, False),
        ('a"', True, False),
        ('"', True, False),
        ('""', True, False),
        ('""a"', True, False),
        ('"a""', True, False),
        ("X", True, False),
        ('X"a"X', True, False),
        ('"a"\v', True, False),
        ('"x"', True, True),
        ("", False, False),
        (" ", False, False),
        (",", False, False),
        ("\t, ,", False, False),
        ("*", False, False),
        (" * ", False, False),
        ('"a", *', False, False),
    ],
)
def test_entity_tags(value: str, tag: bool, strong: bool) -> None:
    """`*` demands no version; only tags in quotes and without W/ are strong."""
    assert preconditions.has_tag({"if-match": value}) is tag
    assert preconditions.has_strong_tag({"if-match": value}) is strong


def test_other_headers_are_no_if_match() -> None:
    """Only this header counts, by its lower-case name."""
    headers = {"If-Match": '"a"', "if-none-match": '"a"', "etag": '"a"'}
    assert not preconditions.has_tag(headers)
    assert not preconditions.has_strong_tag(headers)


@pytest.mark.parametrize(
    ("body", "present"),
    [
        (b'{"etag": "CAE="}', True),
        (b' {"version": 1, "etag": "x"} ', True),
        ('{"etag": "ü"}'.encode(), True),
        (b'{"etag": ""}', False),
        (b'{"etag": null}', False),
        (b'{"etag": 5}', False),
        (b'{"etag": ["x"]}', False),
        (b'{"bindings": {"etag": "x"}}', False),
        (b'{"etag": "x", "etag": ""}', False),
        (b'["etag", "x"]', False),
        (b'"etag"', False),
        (b'{"Etag": "x"}', False),
        (b'{"note": "etag"}', False),
        (b'{"etag": "x"', False),
        (b'{"etag": "\xff"}', False),
        (b"etag=x", False),
        (b"", False),
        (None, False),
        (b"[" * 100_000 + b'"etag"', False),
    ],
)
def test_an_etag_in_the_body(body: bytes | None, present: bool) -> None:
    """Only a top-level string that is not empty, in a JSON object that can be read, counts."""
    assert preconditions.has_field(body, "etag") is present


def test_huge_bodies_are_not_searched() -> None:
    """The limit is one MiB, both ends included."""
    frame = len(json.dumps({"etag": "x", "pad": ""}))
    fits, too_large = (
        json.dumps({"etag": "x", "pad": "p" * (preconditions.MAX_BODY - frame + extra)}).encode() for extra in (0, 1)
    )
    assert len(fits) == preconditions.MAX_BODY == 1_048_576
    assert preconditions.has_field(fits, "etag")
    assert not preconditions.has_field(too_large, "etag")


def test_other_fields_can_be_asked_for() -> None:
    """The name of the field is the caller's."""
    assert preconditions.has_field(b'{"requestId": "1"}', "requestId")
    assert not preconditions.has_field(b'{"requestId": "1"}', "etag")


@pytest.mark.parametrize(
    ("body", "present"),
    [
        (b'{"policy": {"etag": "x"}}', True),
        (b'{"policy": {"etag": ""}}', False),
        (b'{"policy": {"etag": null}}', False),
        (b'{"policy": "etag"}', False),
        (b'{"policy": null, "etag": "x"}', False),
        (b'{"etag": "x"}', False),
        (b'{"policy": {"policy": {"etag": "x"}}}', False),
        (b'{"policy.etag": "x"}', False),
        (b'[{"policy": {"etag": "x"}}]', False),
    ],
)
def test_a_field_of_a_field(body: bytes, present: bool) -> None:
    """A path leads through objects, and through nothing else."""
    assert preconditions.has_field(body, "policy.etag") is present


@pytest.mark.parametrize(
    ("body", "present"),
    [(b'{"kind": "A"}', True), (b'{"kind": "a"}', False), (b'{"kind": "AB"}', False), (b'{"kind": ""}', False)],
)
def test_a_field_counts_only_with_its_value(body: bytes, present: bool) -> None:
    """If a condition names a value, a field with another one does not count."""
    assert preconditions.has_field(body, "kind", "A") is present
    assert not preconditions.has_field(b'{"kind": ["A"]}', "kind", "A")


@pytest.mark.parametrize(
    ("body", "lacking"),
    [
        (b"{}", True),
        (b"", True),
        (b'{"policy": {"etag": "x\\n"}}', True),
        (b'{"updateMask": "etag"}', False),
        (b'{"update_mask": "etag"}', False),
        (b'{"policy": {"description": "no updateMask"}}', False),
        (b'{"\\u0075pdateMask": "bindings"}', False),
        (None, False),
    ],
)
def test_a_field_that_must_be_absent_is_seen_in_any_spelling(body: bytes | None, lacking: bool) -> None:
    """Any spelling that may mean the field counts as the field."""
    assert preconditions.lacks_field(body, b"updateMask", b"update_mask") is lacking


@given(st.binary(max_size=80))
def test_no_body_raises(body: bytes) -> None:
    """Any bytes can be a body."""
    assert preconditions.has_field(b'{"etag"' + body, "etag") in (True, False)
    assert preconditions.has_field(b'{"policy":{"etag"' + body, "policy.etag") in (True, False)
