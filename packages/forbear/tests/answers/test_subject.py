"""`forbear.explain`: what a text, a list of words or a request object stands for, and what it refuses."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from urllib.request import Request as UrllibRequest

import httpx
import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

import forbear
from forbear.adapters import Request

OBJECT = "https://storage.googleapis.com/storage/v1/b/bkt/o/a"
POLICY = "https://storage.googleapis.com/storage/v1/b/bkt/iam"
RPC = "google.storage.v2.Storage/DeleteObject"


class Case(NamedTuple):
    """A call of `explain`, and what its answer says."""

    request: Any
    options: dict[str, Any]
    service: str
    operation: str | None
    repeatable: bool


CASES = {
    "method and URL": Case(f"DELETE {OBJECT}", {}, "cloud_storage", "storage.objects.delete", False),
    "lower case": Case(f" delete  {OBJECT}\n", {}, "cloud_storage", "storage.objects.delete", False),
    "a condition": Case(f"DELETE {OBJECT}?ifGenerationMatch=7", {}, "cloud_storage", "storage.objects.delete", True),
    "headers": Case("PATCH https://h.test/x", {"headers": {"If-Match": '"1"'}}, "rfc9110", None, True),
    "a body": Case(f"PUT {POLICY}", {"body": '{"etag": "C"}'}, "cloud_storage", "storage.buckets.setIamPolicy", True),
    "bytes": Case(f"PUT {POLICY}", {"body": b'{"etag": "C"}'}, "cloud_storage", "storage.buckets.setIamPolicy", True),
    "unknown body": Case(f"PUT {POLICY}", {"body": None}, "cloud_storage", "storage.buckets.setIamPolicy", False),
    "an emulator": Case(
        "GET http://127.0.0.1:1/storage/v1/b/b",
        {"service": "cloud_storage"},
        "cloud_storage",
        "storage.buckets.get",
        True,
    ),
    "a profile": Case(
        "PATCH https://storage.googleapis.com/storage/v1/b/b",
        {"headers": {"If-Match": '"1"'}, "profile": "documented"},
        "cloud_storage",
        "storage.buckets.patch",
        True,
    ),
    "curl": Case(f"curl -X DELETE '{OBJECT}' -s", {}, "cloud_storage", "storage.objects.delete", False),
    "curl, words": Case(["curl", "-X", "DELETE", OBJECT], {}, "cloud_storage", "storage.objects.delete", False),
    "an RPC": Case(f"/{RPC}", {}, "cloud_storage", RPC, False),
    "without slash": Case(RPC, {"fields": {"if_generation_match": 0}}, "cloud_storage", RPC, True),
    "fields in the text": Case(f"grpc {RPC} if_generation_match=0", {}, "cloud_storage", RPC, True),
    "unknown RPC": Case("/pay.v1.Payments/Pay", {}, "grpc", "pay.v1.Payments/Pay", False),
    "a command": Case("INCR counter", {}, "redis", "INCR", False),
    "GET in lower case": Case("get https://h.test/x", {}, "rfc9110", None, True),
    "quotes around a URL": Case("GET 'https://h.test/x'", {}, "rfc9110", None, True),
    "a request line": Case("POST https://h.test/x HTTP/1.1", {}, "rfc9110", None, False),
    "a path as a key": Case("redis GET /x", {}, "redis", "GET", True),
    "a key with slashes": Case("GET cache:/orders/7", {}, "redis", "GET", True),
    "a key with a dot": Case("get user.name", {}, "redis", "GET", True),
    "a path in another command": Case("DEL /x", {}, "redis", "DEL", True),
    "two words of Redis": Case("ACL LIST", {}, "redis", "ACL LIST", True),
    "GET of Redis": Case("GET user:1", {}, "redis", "GET", True),
    "quotes": Case("set key 'a NX'", {}, "redis", "SET", True),
    "words": Case(["SET", "key", "a NX"], {}, "redis", "SET", True),
    "a tuple": Case(("SET", b"key", 7, "NX"), {}, "redis", "SET", False),
    "a method and a URL, words": Case(("POST", "https://h.test/x"), {}, "rfc9110", None, False),
    "an address as a key": Case(["GET", "https://h.test/"], {}, "redis", "GET", True),
    "subcommand": Case("CLIENT LIST", {}, "redis", "CLIENT LIST", True),
    "unknown subcommand": Case("CLIENT UNHEARD", {}, "redis", None, False),
    "unknown command": Case("redis MYMODULE.RUN key", {}, "redis", None, False),
    "unknown command, words": Case(["MYMODULE.RUN", "key"], {}, "redis", None, False),
    "httpx": Case(httpx.Request("DELETE", OBJECT), {}, "cloud_storage", "storage.objects.delete", False),
    "httpx, condition": Case(
        httpx.Request("DELETE", OBJECT, params={"generation": "7"}), {}, "cloud_storage", "storage.objects.delete", True
    ),
    "httpx, body": Case(
        httpx.Request("PUT", POLICY, json={"etag": "C"}), {}, "cloud_storage", "storage.buckets.setIamPolicy", True
    ),
    "httpx, stream": Case(
        httpx.Request("PUT", POLICY, content=iter([b'{"etag": "C"}'])),
        {},
        "cloud_storage",
        "storage.buckets.setIamPolicy",
        False,
    ),
    "requests": Case(
        requests.Request("DELETE", OBJECT, params={"generation": "7"}),
        {},
        "cloud_storage",
        "storage.objects.delete",
        True,
    ),
    "requests, prepared": Case(
        requests.Request("PUT", POLICY, json={"etag": "C"}).prepare(),
        {},
        "cloud_storage",
        "storage.buckets.setIamPolicy",
        True,
    ),
    "requests, stream": Case(
        requests.Request("PUT", POLICY, data=iter([b'{"etag": "C"}'])).prepare(),
        {},
        "cloud_storage",
        "storage.buckets.setIamPolicy",
        False,
    ),
    "headers of an object": Case(
        httpx.Request("PATCH", "https://h.test/x", headers={"If-Match": '"1"'}), {}, "rfc9110", None, True
    ),
    "forbear's own": Case(
        Request("DELETE", "storage.googleapis.com", "/storage/v1/b/bkt/o/a"),
        {},
        "cloud_storage",
        "storage.objects.delete",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_request_stands_for(name: str) -> None:
    """Texts, words and request objects find their service and their operation."""
    case = CASES[name]
    answer = forbear.explain(case.request, **case.options)
    assert (answer.service, answer.operation, answer.repeatable) == (case.service, case.operation, case.repeatable)
    assert bool(answer.missing) is (not case.repeatable and answer.safety is forbear.verdicts.Safety.CONDITIONAL)
    assert answer.outcomes[0].retried


def test_the_method_of_a_request_object_is_no_slip() -> None:
    """A client would send it, so it is judged, although a text with a method so similar to TRACE is refused."""
    assert not forbear.explain(httpx.Request("TRACK", "https://h.test/x")).repeatable
    with pytest.raises(forbear.NoAnswer, match="TRACK is no HTTP method"):
        forbear.explain("TRACK https://h.test/x")


def test_an_answer_is_a_value() -> None:
    """It is frozen, equal to another one about the same, and says all that the command prints."""
    answer = forbear.explain(f"DELETE {OBJECT}")
    assert answer == forbear.explain(httpx.Request("DELETE", OBJECT))
    assert answer.missing == ("ifGenerationMatch=", "generation=")
    assert (answer.met, answer.would_vouch) == (None, None)
    assert answer.duplicate == "deletes a newer object, or hides one more version"
    assert answer.source == "retry page; conformance tests"
    assert answer.maybe_done == (404, 412)
    assert str(answer) == (
        "DELETE storage.googleapis.com/storage/v1/b/bkt/o/a: must not be repeated "
        "(only with ifGenerationMatch= or generation=)"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.why = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("request_", "option"),
    [
        ("POST https://h.test/a", 'safe="POST https://h.test/a"'),
        ("/pay.v1.Payments/Pay", 'safe="/pay.v1.Payments/Pay"'),
        ("INCR counter", 'safe="INCR"'),
        ("GET key", None),
        (f"DELETE {OBJECT}", None),
        ("POST https://storage.googleapis.com/batch/storage/v1", None),
    ],
)
def test_what_would_vouch(request_: str, option: str | None) -> None:
    """It is the option to paste, where only the user's word can help."""
    answer = forbear.explain(request_)
    assert answer.would_vouch == option
    assert (option is not None) is answer.outcomes[1].why.endswith(f"if that does no harm, vouch for it with {option}")


ERRORS: dict[str, tuple[Callable[[], object], str, str]] = {
    "nothing": (lambda: forbear.explain(""), "`request` cannot be told by its text", "such as"),
    "blank": (lambda: forbear.explain(" \n"), "`request` cannot be told by its text", "such as"),
    "a URL": (lambda: forbear.explain(OBJECT), "`request` cannot be told by its text", 'such as "DELETE https://'),
    "no command": (lambda: forbear.explain("SECRET x"), "`request` cannot be told by its text", "INCR key"),
    "no scheme": (lambda: forbear.explain("POST h.test/a?k=SECRET"), "the URL has no scheme: h.test/a", "use https://"),
    **{
        f"a path after {method}": (partial(forbear.explain, f"{method} /x?k=SECRET"), "the URL must name a host", cure)
        for method, cure in (("GET", "redis GET key"), ("get", "redis GET key"), ("put", "https://"), ("QUERY", "host"))
    },
    "a request line": (lambda: forbear.explain("GET /x HTTP/1.1"), "the URL must name a host, got /x", "redis GET key"),
    "a host": (
        lambda: forbear.explain("GET h.test/x"),
        "the URL has no scheme: h.test/x",
        "use https://h.test/x; a key",
    ),
    "a port": (lambda: forbear.explain("GET localhost:80/x"), "the URL has no scheme", "use http://localhost:80/x; a"),
    "a body": (
        lambda: forbear.explain("POST https://h.test/x SECRET"),
        "a request is a method and a URL, got 3",
        "pass",
    ),
    "gs": (lambda: forbear.explain("GET gs://b/o"), "a gs:// URL names an object", "use https://storage.googleapis"),
    "method": (lambda: forbear.explain("G@T https://h.test/"), "the method must be an HTTP method", "put it first"),
    "port": (lambda: forbear.explain("GET https://h.test:x/"), "this is not a URL", "write it as"),
    "curl option": (lambda: forbear.explain("curl --bogus=SECRET x"), "the curl option --bogus", "leave it out"),
    "curl, no URL": (lambda: forbear.explain("curl -s"), "the curl line must name one URL, got 0", "name the URL"),
    "quote": (lambda: forbear.explain("SET key 'SECRET"), "the command cannot be read", "close every quote"),
    "no word": (lambda: forbear.explain([]), "a command must have a name, got none", "such as SET key value NX"),
    "redis alone": (lambda: forbear.explain("redis"), "a command must have a name, got none", "such as SET"),
    "grpc alone": (lambda: forbear.explain("grpc"), "the method of a call is package.Service/Method", "such as google"),
    "field": (lambda: forbear.explain(f"{RPC} SECRET"), "field 1 is not a field", "or use `fields`"),
    "field twice": (lambda: forbear.explain(f"{RPC} a=1", fields={"a": 2}), "the field a is set twice", "leave one"),
    "body of an RPC": (lambda: forbear.explain(RPC, body="x"), "`body` goes with a method and a URL alone", "leave it"),
    "headers of an object": (
        lambda: forbear.explain(httpx.Request("GET", OBJECT), headers={"a": "b"}),
        "`headers` goes with a method and a URL alone",
        "leave it out",
    ),
    "fields of a URL": (lambda: forbear.explain(f"GET {OBJECT}", fields={}), "`fields` goes with an RPC", "leave it"),
    "service of a command": (
        lambda: forbear.explain("GET key", service="iam"),
        "`service` does not go with a command of Redis",
        "leave it out",
    ),
    "service": (lambda: forbear.explain(f"GET {OBJECT}", service="s4"), "no such service: s4", "the services are"),
    "service without HTTP": (
        lambda: forbear.explain(f"GET {OBJECT}", service="redis"),
        "redis does not judge HTTP requests",
        "name a `service` or a `profile` of an HTTP API",
    ),
    "service without RPCs": (
        lambda: forbear.explain(RPC, service="redis"),
        "redis does not judge gRPC calls",
        "name a `service` or a `profile` of a gRPC API",
    ),
    "profile": (lambda: forbear.explain(f"GET {OBJECT}", profile="best"), "no such profile: cloud_storage.best", "the"),
    "two services": (
        lambda: forbear.explain("GET https://h.test/", service="iam", profile="memorystore"),
        "`profile` memorystore does not go with the service iam",
        "name a profile of iam, or a preset",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_there_is_no_answer(name: str) -> None:
    """The error says what cannot be read or judged, and the cure, without what may be secret."""
    call, message, cure = ERRORS[name]
    with pytest.raises(forbear.NoAnswer) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert cure in caught.value.cure
    assert str(caught.value) == f"{caught.value.message}; {caught.value.cure}"
    assert "SECRET" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((7,), {}, "`request` must be a text, a list of words, or a request object"),
        ((None,), {}, "`request` must be a text"),
        ((b"GET key",), {}, "got a bytes"),
        ((UrllibRequest("https://h.test/"),), {}, "got a Request"),
        ((["SET", None],), {}, "a word of a command must be"),
        ((f"GET {OBJECT}",), {"headers": [("a", "b")]}, "`headers` must map names to values, got a list"),
        ((f"GET {OBJECT}",), {"body": 7}, "`body` must be bytes, a text or None (not known), got a int"),
        ((RPC,), {"fields": ["a=1"]}, "`fields` must map names to values, got a list"),
        ((f"GET {OBJECT}",), {"service": 7}, "`service` must be the name of a service, or None, got 7"),
        ((f"GET {OBJECT}",), {"profile": None}, "`profile` must be the name of a profile, got None"),
    ],
)
def test_wrong_types(arguments: tuple[Any, ...], options: dict[str, Any], text: str) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises(TypeError) as caught:
        forbear.explain(*arguments, **options)
    assert text in str(caught.value)


@given(st.text() | st.lists(st.text(), max_size=4) | st.lists(st.sampled_from(["GET", "curl", "grpc", "redis", "a/b",
       "https://h.test/", "x=1", "'", "SET", "-d", "@/etc/hostname"]), max_size=4).map(" ".join))  # fmt: skip
@example("curl -d @/etc/hostname https://h.test/")
@example("GET \ud800")
def test_any_text_is_answered_or_refused(request_: str | list[str]) -> None:
    """No text and no words lead to another error, and none that is unknown may be repeated without a reason."""
    try:
        answer = forbear.explain(request_)
    except forbear.NoAnswer:
        return
    assert not (answer.operation is None and answer.service in ("grpc", "redis") and answer.repeatable)


def test_no_secret_is_shown() -> None:
    """Neither the text nor the repr of an answer has a header, a body, a query, a value or an argument."""
    for answer in (
        forbear.explain("curl -d SECRET -H 'A: SECRET' 'https://me:SECRET@h.test/?k=SECRET'"),
        forbear.explain("POST https://h.test/", headers={"authorization": "SECRET"}, body="SECRET"),
        forbear.explain(f"/{RPC}", fields={"if_generation_match": "SECRET"}),
        forbear.explain("SET SECRET SECRET"),
    ):
        assert "SECRET" not in f"{answer}{answer!r}"


def test_the_title_says_how_a_text_was_read() -> None:
    """A text may be a request or a command of Redis; the answer names Redis."""
    assert str(forbear.explain("GET example")) == "Redis GET (1 argument): may be repeated (it changes nothing)"
    assert forbear.explain("redis 'a b' c").title == "Redis command (2 arguments)"


def test_answers_do_not_depend_on_the_switch() -> None:
    """They are about the rules, even where retries are off."""
    with forbear.disabled():
        assert forbear.explain("GET key").outcomes[1].retried


def printed_by(code: str) -> list[str]:
    """The words that a program prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


_QUESTIONS = f"""
import forbear, sys, forbear.answers.har
def ask():
    for text in ("DELETE {OBJECT}", "curl -d @/etc/hostname https://h.test/", "/{RPC}", "GET key"):
        forbear.explain(text)
ask()
sys.addaudithook(lambda event, _: print(event) if event.startswith(("open", "socket")) else None)
ask()
print(*sys.modules)
"""


def test_what_is_loaded_and_opened() -> None:
    """`import forbear` loads no answers. They load no command line, client or exchange, and open no file or socket."""
    imported = printed_by("import forbear, sys; print(*sys.modules)")
    assert [name for name in imported if name.startswith("forbear.answers")] == []
    found = printed_by(_QUESTIONS)
    assert {"forbear.answers.curl", "forbear.answers.grpc", "forbear.services.redis"} <= {*found}
    wrong = ("click", "rich", "forbear.cli", "forbear.clients", "forbear.exchange", "open", "socket.")
    assert sorted(name for name in found if name.startswith(wrong)) == []


def test_a_slip_in_a_method_is_refused() -> None:
    """The error has the method to write; a method of one's own is one, too."""
    with pytest.raises(forbear.NoAnswer, match=r"GETT is no HTTP method.*write GET"):
        forbear.explain("GETT https://api.example.com/x")
    assert forbear.explain("FROBNICATE https://api.example.com/x").repeatable is False
