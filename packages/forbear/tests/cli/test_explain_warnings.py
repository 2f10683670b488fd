"""`forbear explain` warns of conditions that are there but do not count, on stderr and in the JSON."""

from pathlib import Path

import pytest

from forbear.answers.condition_warnings import find_in_request
from forbear.http.request import Request
from forbear.services import cloud_storage
from forbear_testkit.cli.running import Invoke, explained

B = "https://storage.googleapis.com/storage/v1/b/b"
OBJECT, POLICY = f"{B}/o/a", f"{B}/iam"
XML = "https://storage.googleapis.com/my-bucket"
WHOLE = "does not count; it must be a whole number such as 0 or 1700000000000001"

CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "no number": (("DELETE", f"{OBJECT}?ifGenerationMatch=abc"), f"the value of `ifGenerationMatch` {WHOLE}"),
    "negative": (("PATCH", f"{B}?ifMetagenerationMatch=-1"), f"the value of `ifMetagenerationMatch` {WHOLE}"),
    "empty": (("PATCH", f"{B}?ifMetagenerationMatch="), f"the value of `ifMetagenerationMatch` {WHOLE}"),
    "zero": (
        ("DELETE", f"{OBJECT}?generation=0"),
        "the value of `generation` does not count; it must be a whole number above 0",
    ),
    "twice": (
        ("DELETE", f"{OBJECT}?ifGenerationMatch=1&ifGenerationMatch=2"),
        "`ifGenerationMatch` is in the query with several values, so it does not count; keep one",
    ),
    "case": (
        ("DELETE", f"{OBJECT}?ifgenerationmatch=1"),
        "`ifgenerationmatch` does not count; write `ifGenerationMatch`, with its capital letters",
    ),
    "header": (
        ("PUT", f"{XML}/a", "-d", "x", "-H", "x-goog-if-generation-match: abc"),
        f"the value of `x-goog-if-generation-match` {WHOLE}",
    ),
    "no JSON": (
        ("PUT", POLICY, "-d", "etag=abc"),
        "the body is no JSON object, so etag in it is not read; pass the JSON that is sent",
    ),
    "a list": (
        ("PUT", POLICY, "-d", "[1]"),
        "the body is no JSON object, so etag in it is not read; pass the JSON that is sent",
    ),
    "empty etag": (
        ("PUT", POLICY, "-d", '{"etag": ""}'),
        "`etag` in the body does not count; it must be a text that is not empty",
    ),
    "etag of another type": (
        ("PUT", POLICY, "-d", '{"etag": {"a": 1}}'),
        "`etag` in the body does not count; it must be a text that is not empty",
    ),
    "stdin": (
        ("PUT", POLICY, "-d", "@-"),
        "the body is not known, so etag in it is not read; pass it as `--data`",
    ),
    "weak": (
        ("PATCH", "https://api.example.com/x", "-H", 'If-Match: W/"1"'),
        '`If-Match` does not count; write strong entity tags in double quotes, such as "abc", without * and W/',
    ),
    "unquoted": (
        ("PATCH", "https://api.example.com/x", "-H", "If-Match: abc"),
        '`If-Match` does not count; write strong entity tags in double quotes, such as "abc", without * and W/',
    ),
    "XML": (
        ("POST", f"{XML}?delete", "-d", "a"),
        "the body is no XML, so VersionId in every Object is not read",
    ),
}


def as_curl(request: tuple[str, ...]) -> tuple[str, ...]:
    """The same request as a curl command line."""
    method, url, *options = request
    return ("curl", "-X", method, url, *options)


@pytest.mark.parametrize("name", CASES)
def test_conditions_that_do_not_count_get_a_warning(invoke: Invoke, name: str) -> None:
    """For a METHOD and a URL and for a curl command line alike; the answer itself stays on stdout."""
    request, warning = CASES[name]
    for words in (request, as_curl(request)):
        done = invoke("explain", *words)
        assert f"warning: {warning}\n" in done.stderr
        assert "warning" not in done.stdout
        assert explained(invoke, *words)["warnings"] == [warning]


@pytest.mark.parametrize(
    "request_",
    [
        ("DELETE", f"{OBJECT}?ifGenerationMatch=0"),
        ("DELETE", OBJECT),
        ("GET", f"{OBJECT}?ifGenerationMatch=abc"),
        ("PUT", POLICY, "-d", '{"etag": "abc"}'),
        ("PUT", POLICY, "-d", "{}"),
        ("PUT", POLICY),
        ("PATCH", "https://api.example.com/x", "-H", 'If-Match: "1"'),
        ("PATCH", "https://api.example.com/x?generation=abc", "-d", "x"),
        ("POST", f"{XML}?delete", "-d", "<Delete/>"),
    ],
    ids=" ".join,
)
def test_no_warning(invoke: Invoke, request_: tuple[str, ...]) -> None:
    """A condition that can be read, that is absent, or that the operation does not have needs none."""
    assert explained(invoke, *request_)["warnings"] == []
    assert "warning" not in invoke("explain", *request_).stderr


def test_fields_that_do_not_count_get_a_warning(invoke: Invoke) -> None:
    """The fields of an RPC are read by the same rules."""
    call = ("grpc", "google.storage.v2.Storage/DeleteObject", "if_generation_match=abc")
    warning = f"the value of `if_generation_match` {WHOLE}"
    assert explained(invoke, *call)["warnings"] == [warning]
    assert f"warning: {warning}\n" in invoke("explain", *call).stderr
    assert explained(invoke, *call[:2], "if_generation_match=7")["warnings"] == []


def test_secrets_are_hidden(invoke: Invoke) -> None:
    """A value in the wrong place may be one, so no value is shown."""
    done = invoke("explain", "DELETE", f"{OBJECT}?ifGenerationMatch=secret")
    assert "does not count" in done.stderr
    assert "secret" not in done.output


def test_large_bodies(tmp_path: Path) -> None:
    """A body that is too large to be searched says so."""
    request = Request("PUT", "storage.googleapis.com", "/storage/v1/b/b/iam", {}, b" " * (1024 * 1024 + 1))
    judgement = cloud_storage.RECOMMENDED.classify(request)
    assert find_in_request(request, judgement) == ("the body has more than 1 MiB, so etag in it is not read",)
