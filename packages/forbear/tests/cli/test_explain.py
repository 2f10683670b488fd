"""`forbear explain`: the answers of the tables for real requests, as text and JSON, without secrets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.answers.http import answer
from forbear.answers.profile import ProfileChoice
from forbear.core.decide import Wait, decide
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT
from forbear.http.request import Request
from forbear.services import cloud_storage
from forbear.services.rfc9110 import RFC9110
from forbear_testkit.cli.running import Invoke, explained, retried

API = "https://storage.googleapis.com/storage/v1"
UPLOAD = "https://storage.googleapis.com/upload/storage/v1/b/bkt/o"
NOT_SENT, SENT = "connection refused, DNS or TLS failure", "reset or timeout after sending"


@pytest.mark.parametrize(
    ("args", "operation", "safety", "met", "repeatable"),
    [
        (("GET", f"{API}/b/bkt/o/a"), "storage.objects.get", "always", None, True),
        (("get", f"{API}/b/bkt/o/a?alt=media"), "storage.objects.get", "always", None, True),
        (("DELETE", f"{API}/b/bkt/o/a"), "storage.objects.delete", "conditional", None, False),
        (("DELETE", f"{API}/b/bkt/o/a?ifGenerationMatch=3"), "storage.objects.delete", "conditional",
         "ifGenerationMatch=", True),
        (("POST", f"{UPLOAD}?uploadType=media&name=a&ifGenerationMatch=0", "-d", "x"), "storage.objects.insert",
         "conditional", "ifGenerationMatch=", True),
        (("POST", f"{UPLOAD}?uploadType=media&name=a"), "storage.objects.insert", "conditional", None, False),
        (("PUT", f"{API}/b/bkt/iam", "-d", '{"etag": "CAE="}'), "storage.buckets.setIamPolicy", "conditional",
         "etag in the body", True),
        (("PUT", f"{API}/b/bkt/iam", "-d", '{"policy": "CAE="}'), "storage.buckets.setIamPolicy", "conditional", None,
         False),
        (("POST", f"{API}/b/bkt/notificationConfigs"), "storage.notifications.insert", "never", None, False),
        (("POST", "https://api.example.com/pay"), None, "never", None, False),
        (("PUT", "https://api.example.com/pay"), None, "always", None, True),
        (("PATCH", "https://api.example.com/pay", "-H", 'If-Match: "7"'), None, "conditional", "If-Match:", True),
        (("curl", "-XPATCH", "https://api.example.com/pay", "-H", 'If-Match: "7"'), None, "conditional", "If-Match:",
         True),
        ((f"curl -X DELETE '{API}/b/bkt/o/a?ifGenerationMatch=3' -s",), "storage.objects.delete", "conditional",
         "ifGenerationMatch=", True),
    ],
)  # fmt: skip
def test_what_may_be_repeated(
    args: tuple[str, ...], operation: str | None, safety: str, met: str | None, repeatable: bool, invoke: Invoke
) -> None:
    """Operation, safety and condition are the service's, and they decide what is retried after a lost response."""
    document = explained(invoke, *args)
    assert (document["operation"], document["safety"], document["met"]) == (operation, safety, met)
    assert document["repeatable"] == repeatable
    found = retried(document)
    assert found[NOT_SENT]
    assert {found[name] for name in (SENT, "408", "429", "500", "502", "503", "504")} == {repeatable}
    assert found["429 with Retry-After: 30"] == repeatable
    assert not any(found[name] for name in ("400", "401", "403", "404", "409", "412"))
    assert found.get("conflict", False) is False
    assert ("conflict" in found) == document["mutation"]


def test_the_reasons(invoke: Invoke) -> None:
    """Each answer comes with its reason, and the cure where there is one."""
    document = explained(invoke, "DELETE", f"{API}/b/bkt/o/a")
    why = {outcome["failure"]: outcome["why"] for outcome in document["failures"]}
    assert why[NOT_SENT] == "it was not executed"
    assert "it may be repeated only with ifGenerationMatch= or generation=" in why[SENT]
    assert why["404"] == "the error is permanent"
    assert "read-modify-write" in why["conflict"]
    assert document["conditions"] == ["ifGenerationMatch=", "generation="]
    document = explained(invoke, "GET", f"{API}/b/bkt/o/a")
    why = {outcome["failure"]: outcome["why"] for outcome in document["failures"]}
    assert why["429 with Retry-After: 30"].endswith("after at least 30 s, as the server asks")


def test_the_cure(invoke: Invoke) -> None:
    """A POST that no table knows is stopped with the pattern to paste; it covers nothing else."""
    done = invoke("explain", "POST", "https://api.example.com/v1/users/17/search?q=x", "--json")
    reasons = {failure["why"] for failure in json.loads(done.stdout)["failures"] if failure["status"] == 503}
    (reason,) = reasons
    assert reason.startswith("the request may have been executed and must not be executed twice; if that does no harm")
    cure = 'vouch for it with safe="POST https://api.example.com/v1/users/17/search?<fill in>"'
    assert reason.endswith(cure)
    text = invoke("explain", "POST", "https://api.example.com/v1/users/17/search?q=x").stdout
    assert text.count("safe=") == text.count(f"\nif a repeat does no harm, {cure}\n") == 1


def test_profiles_and_services(invoke: Invoke) -> None:
    """The profile decides about disputed conditions; a service can be named for a host that is not known."""
    patch = ("PATCH", f"{API}/b/bkt", "-H", 'If-Match: "7"')
    assert explained(invoke, *patch)["repeatable"] is False
    document = explained(invoke, *patch, "--profile", "documented")
    assert document["repeatable"] is True
    assert document["profile"] == "documented"
    emulated = ("GET", "http://127.0.0.1:4443/storage/v1/b/bkt")
    assert explained(invoke, *emulated)["service"] == "rfc9110"
    document = explained(invoke, *emulated, "--service", "cloud_storage")
    assert (document["service"], document["operation"]) == ("cloud_storage", "storage.buckets.get")
    assert "the host is not known" in invoke("explain", *emulated).stderr


def test_resumable_uploads_and_batches(invoke: Invoke) -> None:
    """A chunk is continued after asking the session; a batch is refused with the reason."""
    chunk = ("PUT", f"{UPLOAD}?uploadType=resumable&upload_id=SECRET", "-d", "x", "-H", "Content-Range: bytes 0-0/1")
    document = explained(invoke, *chunk)
    assert document["session"] is True
    assert retried(document)["503"] is True
    assert "the client queries the session" in str(document["failures"])
    batch = explained(invoke, "POST", "https://storage.googleapis.com/batch/storage/v1")
    assert "a batch holds many calls" in batch["refused"]
    assert retried(batch)["503"] is False


def test_the_text(invoke: Invoke) -> None:
    """For people there are the facts, a table, and the schedule in short; data goes to stdout only."""
    done = invoke("explain", "DELETE", f"{API}/b/bkt/o/a?ifGenerationMatch=7")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:9] == [
        "DELETE storage.googleapis.com/storage/v1/b/bkt/o/a",
        "",
        "service     cloud_storage (policy)",
        "operation   storage.objects.delete",
        "safety      conditional",
        "conditions  ifGenerationMatch= or generation= (met: ifGenerationMatch=)",
        "repeatable  yes",
        "duplicate   deletes a newer object, or hides one more version",
        "source      retry page; conformance tests",
    ]
    assert any(line.startswith("408, 429, 500, 502, 503, 504             yes       transient, and") for line in lines)
    assert lines[-2] == "404, 412 on a later attempt may mean that an earlier attempt worked"
    assert lines[-1].startswith(
        "waits of 1 to 2 s, 2 to 4 s, 4 to 8 s and so on; any number of attempts, timeout 600 s;"
    )


def test_no_secret_is_repeated(invoke: Invoke) -> None:
    """Tokens, signatures, passwords, keys and upload ids are not printed, in no form of output."""
    url = "https://me:SECRET@storage.googleapis.com/upload/storage/v1/b/b/o?upload_id=SECRET&X-Goog-Signature=SECRET"
    plain = ("PUT", url, "-H", "Authorization: Bearer SECRET", "-d", "SECRET")
    line = ("curl", "-u", "me:SECRET", "-X", "PUT", url, "-H", "Authorization: Bearer SECRET", "-d", "SECRET")
    for args in (plain, line, ("--json", *plain), ("--json", *line)):
        done = invoke("explain", *args)
        assert done.exit_code == 0
        assert "SECRET" not in done.stdout + done.stderr


def test_without_words_there_are_three_examples(invoke: Invoke) -> None:
    """The command alone names what may follow, by three examples that work."""
    done = invoke("explain")
    examples = done.stderr.partition("\nhint: such as: ")[2].strip().split("; ")
    assert (done.exit_code, len(examples)) == (2, 3)
    for example in examples:
        assert invoke(*example.split()[1:]).exit_code == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((), "error: a request, an RPC, a command of Redis or a call of AWS must follow\n"),
        (("https://host/a",), "error: a request is a METHOD and a URL, got 1 word\n"),
        (("PUT", "https://host/a", "Bearer", "SECRET"), "error: a request is a METHOD and a URL, got 4 words\n"),
        (("GET", "gs://bkt/a/b"), "hint: use https://storage.googleapis.com/storage/v1/b/bkt/o/a%2Fb\n"),
        (("GET", "host/a?k=SECRET"), "error: the URL has no scheme: host/a\nhint: use https://host/a\n"),
        (
            ("POST", "/orders?k=SECRET"),
            "error: the URL must name a host, got /orders\nhint: write it as https://host/path, in quotes\n",
        ),
        (("sqs.SendMessage",), "hint: such as: forbear explain GET 'https://host/path', or aws sqs.SendMessage; put "),
        (("GET", "localhost:8080/a"), "hint: use http://localhost:8080/a\n"),
        (("GET", "[::1]:8080/a"), "hint: use http://[::1]:8080/a\n"),
        (("GET", "localhost.example.com/a"), "hint: use https://localhost.example.com/a\n"),
        (("https://host/a?k=SECRET", "GET"), "hint: put it first and the URL after it\n"),
        (("GET", "https://host:x/"), "error: this is not a URL: https://host:x/\n"),
        (("G T", "https://host/"), "error: the method must be an HTTP method such as GET or PATCH\n"),
        (("GET", "https://host/", "-H", "Bearer SECRET"), "error: header 1 is not a header"),
        (
            ("GET", "https://host/", "-d", "@no/such/file"),
            "error: cannot read the body from no/such/file: No such file",
        ),
        (
            ("GET", "https://host/", "--service", "s4"),
            "error: no such service: s4\nhint: the services are cloud_storage, ",
        ),
        (("GET", "https://host/", "--service", "redis"), "error: redis does not judge HTTP requests\n"),
        (
            ("GET", "https://host/", "--json-fields", "{}"),
            "error: `--json-fields` does not go with a METHOD and a URL\n",
        ),
        (("GET", "https://host/", "--csv"), "error: `--csv` does not go with a METHOD and a URL\n"),
        (("GET", "https://host/", "--profile", "documented"), "error: no such profile: rfc9110.documented\n"),
        (
            ("GET", "https://host/", "--profile", "best"),
            "error: no such profile: rfc9110.best\nhint: the profile",
        ),
        (("curl 'https://host",), "error: the curl line cannot be read: no closing quotation\n"),
        (("curl", "--bogus", "https://host"), "error: the curl option --bogus is not known here\n"),
        (("-H", "A: b", "curl", "https://host"), "hint: put it after the word curl\n"),
        (("curl", "https://host", "--json"), "hint: put options of forbear before curl\n"),
    ],
)
def test_bad_input(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """Bad input is refused in words, with a cure and exit code 2, and no secret in them."""
    done = invoke("explain", *args)
    assert done.exit_code == 2
    assert text in done.stderr
    assert done.stdout == ""
    assert "SECRET" not in done.stderr


def test_an_option_may_come_first_or_last(invoke: Invoke) -> None:
    """Our own options come anywhere for METHOD and URL, and before the word curl."""
    for args in (
        ("--json", "GET", API),
        ("GET", API, "--json"),
        ("--json", "--", "curl", API),
        ("--json", "curl", API),
    ):
        assert json.loads(invoke("explain", *args).stdout)["repeatable"] is True


@given(
    st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "BREW"]),
    st.sampled_from(["/storage/v1/b/b", "/storage/v1/b/b/o/o", "/storage/v1/b/b/o", "/batch/storage/v1", "/other"]),
    st.sampled_from(["", "?ifGenerationMatch=1", "?ifMetagenerationMatch=1", "?ifGenerationNotMatch=1"]),
    st.booleans(),
)
def test_the_answers_are_the_decisions(method: str, path: str, query: str, known: bool) -> None:
    """Failures are reported as retried if and only if `decide` retries them."""
    host = "storage.googleapis.com" if known else "api.example.com"
    policy, service = (cloud_storage.policy, cloud_storage.policy.service) if known else (cloud_storage.policy, RFC9110)
    assert service is not None
    request = Request(method, host, path + query)
    judgement = service.classify(request)
    for outcome in answer(request, service.name, ProfileChoice("policy")).outcomes:
        if outcome.failure == "conflict":
            assert not outcome.retried
            continue
        verdict = NOT_EXECUTED if outcome.failure == NOT_SENT else TRANSIENT
        if outcome.status is not None:
            found = service.verdict(judgement, outcome.status, {})
            assert found is not None
            verdict = found
        step = decide(
            policy.limits, policy.backoff, verdict, attempt=1, elapsed=0, u=0.5, repeatable=judgement.repeatable
        )
        assert outcome.retried == isinstance(step, Wait)
