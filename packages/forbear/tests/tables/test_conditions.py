"""The grammar of conditions, and how each is read off a request."""

import pytest

from forbear.http.request import Request
from forbear.tables.conditions import compile_fields, compile_http, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("q:a", ((("q", "a"),),)),
        ("q:a|h:If-Match", ((("q", "a"),), (("h", "If-Match"),))),
        ("q:a&b:etag", ((("q", "a"), ("b", "etag")),)),
        ("q:a & q:b | const:true", ((("q", "a"), ("q", "b")), (("const", "true"),))),
    ],
)
def test_the_grammar(text: str, expected: object) -> None:
    """Alternatives are joined by |, conjunctions by &."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text", ["a", "q:", ":a", "y:a", "f:", "q:a|", "|q:a", "q:a&", "q:a||q:b", "!q:a", "const:false", "const:", "Q:a"]
)
def test_nonsense_is_refused(text: str) -> None:
    """A condition that would never or always hold by mistake is an error."""
    with pytest.raises(ValueError, match=r"a condition must be one of q, h, b, .* a colon and a name, got"):
        parse(text)


def test_a_condition_on_xml_names_two_elements() -> None:
    """An element is looked for in each entry, so both must be named."""
    for text in ("x:a", "x:a/b/c"):
        with pytest.raises(ValueError, match="a condition on XML must be x:ENTRY/ELEMENT, got"):
            parse(text)


def _held(text: str, query: str = "", body: bytes | None = b"", **headers: str) -> list[str]:
    request = Request(
        "PUT", "h", f"/?{query}", {name.replace("_", "-"): value for name, value in headers.items()}, body
    )
    return [condition.text for condition in compile_http(parse(text)) if condition.holds(request, query)]


def test_each_kind_is_read_from_its_place() -> None:
    """A query parameter, a header and a field of the body do not stand for each other."""
    text = "q:ifGenerationMatch|h:If-Match|b:etag"
    assert _held(text) == []
    assert _held(text, query="ifGenerationMatch=0") == ["ifGenerationMatch="]
    assert _held(text, if_match='"x"') == ["If-Match:"]
    assert _held(text, body=b'{"etag": "x"}') == ["etag in the body"]
    assert _held(text, query="If-Match=1&etag=1", ifgenerationmatch="1", etag="x", body=b'{"If-Match": "x"}') == []


def test_a_generation_must_be_positive_and_a_condition_may_be_zero() -> None:
    """0 says "must not exist" in a condition, and names no generation."""
    text = "q:ifGenerationMatch|q:generation"
    assert _held(text, query="ifGenerationMatch=0&generation=0") == ["ifGenerationMatch="]
    assert _held(text, query="generation=1") == ["generation="]


def test_a_conjunction_needs_all_of_its_terms() -> None:
    """Every term of a conjunction must hold."""
    text = "q:generation&q:etag"
    assert _held(text, query="generation=1") == _held(text, query="etag=b") == []
    assert _held(text, query="generation=1&etag=b") == ["generation= and etag="]


def test_some_operations_need_nothing() -> None:
    """`const:true` always holds."""
    assert _held("const:true") == ["nothing"]


def test_a_header_without_a_known_rule_is_refused() -> None:
    """Which values of a header count must be known before it can make anything safe."""
    with pytest.raises(ValueError, match="a condition must be on a value whose rule is known, got 'X-Y'"):
        compile_http(parse("h:X-Y"))


def test_headers_of_the_xml_api_are_integers() -> None:
    """0 counts, white space around it does not matter, and a list is no number."""
    text = "h:x-goog-if-generation-match"
    assert _held(text, x_goog_if_generation_match=" 0\t") == ["x-goog-if-generation-match:"]
    assert _held(text, x_goog_if_generation_match="0, 0") == []
    assert _held(text, query="x-goog-if-generation-match=0") == []


def test_a_field_that_must_not_be_there() -> None:
    """In either spelling that servers read."""
    text = "b:policy.etag&!b:updateMask"
    spelt = ["policy.etag in the body and no updateMask in the body"]
    assert _held(text, body=b'{"policy": {"etag": "x"}}') == spelt
    assert _held(text, body=b'{"policy": {"etag": "x"}, "updateMask": "etag"}') == []
    assert _held(text, body=b'{"policy": {"etag": "x"}, "update_mask": "etag"}') == []


def test_an_element_of_every_entry() -> None:
    """The text says what it is in."""
    text = "x:Object/VersionId"
    assert _held(text, body=b"<D><Object><VersionId>1</VersionId></Object></D>") == ["VersionId in every Object"]
    assert _held(text, body=b"<D><Object/></D>") == []


def test_requests_and_calls_take_what_they_can_read() -> None:
    """A row may list the conditions of both."""
    both = parse("q:etag|f:etag&!f:update_mask|f:kind=A|const:true")
    assert [condition.text for condition in compile_http(both)] == ["etag=", "nothing"]
    of_calls = compile_fields(both)
    assert [condition.text for condition in of_calls] == ["etag and no update_mask", "kind=A", "nothing"]
    held = [condition.holds({"etag": "x", "kind": "A"}) for condition in of_calls]
    assert held == [True, True, True]
    held = [condition.holds({"etag": "x", "update_mask": {}, "kind": "B"}) for condition in of_calls]
    assert held == [False, False, True]
    assert compile_fields(parse("q:etag&f:etag")) == ()
    assert compile_http(parse("q:etag&f:etag")) == ()
    with pytest.raises(ValueError, match="whose rule is known, got 'surprise'"):
        compile_fields(parse("f:policy.surprise"))


class _Broken:
    """A message whose every field raises."""

    def __getattr__(self, name: str) -> object:
        raise LookupError(name)


class _Halting(dict[str, object]):
    """A message of which one field raises."""

    def get(self, key: str, default: object = None) -> object:
        if key == "update_mask":
            raise LookupError(key)
        return super().get(key, default)


@pytest.mark.parametrize("message", [_Broken(), _Halting(etag="x")], ids=["every field", "one field"])
def test_a_message_that_cannot_be_read_meets_nothing(message: object) -> None:
    """Neither is a field known to be there nor another one not to be; nothing is raised at the caller."""
    text = "f:etag&!f:update_mask|f:update_mask.kind=A|!f:update_mask&f:etag"
    assert [condition.holds(message) for condition in compile_fields(parse(text))] == [False] * 3
