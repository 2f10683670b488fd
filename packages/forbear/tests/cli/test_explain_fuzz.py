"""Whatever is typed or recorded: an answer or a clear error, and no unknown mutation that may be repeated."""

import json
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from forbear.answers import tables
from forbear.cli.app import app
from forbear.core.verdict import Safety
from forbear.http.request import READS

HOSTS = ("storage.googleapis.com", "bkt.storage.googleapis.com", "iam.googleapis.com", "iamcredentials.googleapis.com",
         "redis.googleapis.com", "memorystore.googleapis.com", "www.googleapis.com")  # fmt: skip
KNOWN = {name: entry for table in tables.names() for entry in tables.find(table) for name in (entry.id, entry.rpc)}

anything = st.text(st.characters(), max_size=20)  # what is no text (surrogates), too
part = st.sampled_from(["storage", "v1", "v2", "b", "o", "bkt", "upload", "projects", "p", "roles", "serviceAccounts",
                        "x:undelete", "x:setIamPolicy", "instances", "keys", "%2F", "..", ""]) | anything  # fmt: skip
query = st.sampled_from(["", "?ifGenerationMatch=0", "?uploads", "?acl", "?uploadType=media", "?upload_id=x", "?x"])
url = st.tuples(st.sampled_from(HOSTS), st.lists(part, max_size=6), query).map(
    lambda it: f"https://{it[0]}/{'/'.join(it[1])}{it[2]}"
)
verb = st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "BREW", "REDIS"]) | anything
header = st.sampled_from(["If-Match: *", "x-goog-resumable: start", "x-http-method-override: GET", "Authorization: x"])
names = ["if_generation_match", "generation", "policy.etag", "etag", "request_id", "upload_id", "a.b"]
field = st.tuples(st.sampled_from(names) | anything, anything).map("=".join)
document = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)
rpc = st.sampled_from(sorted(entry.rpc for entry in KNOWN.values() if entry.rpc)) | st.sampled_from(
    ["google.storage.v2.Storage/Nothing", "google.iam.admin.v1.IAM/Nothing", "pay.v1.Payments/Pay", "/a.B/C"]
)
command = st.sampled_from(sorted(entry.id for entry in tables.find("redis"))) | anything
argument = st.sampled_from(["k", "NX", "XX", "GET", "EX", "0", "-1", "*", "STORE", "ID", "--json"]) | anything


def asked(*args: str, stdin: bytes | None = None) -> Any:
    """Return the answer of `forbear explain --json`, None if it refuses; fail on anything else."""
    done = CliRunner().invoke(app, ["explain", "--json", *args], input=stdin, catch_exceptions=False)
    if done.exit_code == 0:
        return json.loads(done.stdout)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    return None


def check(answer: Any) -> None:
    """A repeatable request is a read, safe by its table, or safe with a condition that is met."""
    if answer is None or not answer["repeatable"] or answer["service"] == "rfc9110":
        return
    entry = KNOWN.get(answer["operation"])
    if entry is None:
        assert not answer["mutation"]
    elif answer["met"] is None:
        assert entry.safety is Safety.ALWAYS or answer["session"] or answer["operation"] == "storage.objects.insert"
    else:
        assert entry.safety is Safety.CONDITIONAL
        assert answer["met"] in answer["conditions"]


@given(verb, url | anything, st.lists(header | anything, max_size=2), anything)
@example("PUT", "https://bkt.storage.googleapis.com/x?nothing-known", [], "")
@example("DELETE", "https://iam.googleapis.com/v9/x", [], "")
@example("GET", "https://\ud800/\ud800?\ud800#\ud800", [], "\ud800")
def test_an_unknown_mutation_is_never_repeatable(verb: str, url: str, headers: list[str], body: str) -> None:
    """Any method, URL, headers and body; on a host that is known, an unknown mutation is never repeatable."""
    options = [word for line in headers for word in ("-H", line)]
    answer = asked(*options, "-d", body.lstrip("@"), "--", verb, url)
    check(answer)
    if answer and answer["operation"] is None and any(answer["request"]["host"] == host for host in HOSTS[:-1]):
        assert answer["repeatable"] == (answer["request"]["method"] in READS and not answer["mutation"])


@given(st.lists(st.sampled_from(["-X", "-d", "-H", "-I", "-G", "--json", "-T", "--url", "'"]) | verb | url | header))
def test_curl_lines(words: list[str]) -> None:
    """Any curl line, in words and in one piece."""
    check(asked("curl", *words))
    check(asked(f"curl {' '.join(words)}"))


@given(rpc | anything, st.lists(field | anything, max_size=3), st.none() | document)
@example("google.storage.v2.Storage/DeleteObject", ["\ud800=\ud800"], None)
def test_an_unknown_rpc_is_never_repeatable(rpc: str, fields: list[str], message: Any) -> None:
    """Any method with any fields; a package that is not known, and none of Google's, has nothing to be repeated."""
    options = [] if message is None else ["--json-fields", json.dumps(message)]
    answer = asked(*options, "--", "grpc", rpc, *fields)
    check(answer and {"session": False, **answer})
    if answer and (answer["operation"] is None or not answer["operation"].startswith("google.")):
        assert not answer["repeatable"]


@given(command, st.lists(argument, max_size=5))
@example("\ud800", [])
@example("SET k 'v", [])
def test_an_unknown_command_is_never_repeatable(command: str, arguments: list[str]) -> None:
    """Any command; one that is not known may never be repeated."""
    for words in ((command, *arguments), (" ".join((command, *arguments)),)):
        answer = asked("redis", *words)
        check(answer and {"session": False, **answer})
        assert not (answer and answer["operation"] is None and answer["repeatable"])


request = st.fixed_dictionaries(
    {"method": verb | document, "url": url | document},
    optional={
        "headers": document | st.lists(st.fixed_dictionaries({"name": anything, "value": anything}), max_size=2),
        "bodySize": document,
        "postData": document
        | st.fixed_dictionaries({"text": anything | document}, optional={"encoding": st.just("base64")}),
    },
)
response = st.fixed_dictionaries(
    {"status": st.sampled_from([0, 200, 404, 409, 503]) | document}, optional={"headers": document, "content": document}
)
entries = st.lists(st.fixed_dictionaries({"request": request}, optional={"response": response | document}), max_size=3)


files = st.fixed_dictionaries({"log": st.fixed_dictionaries({"entries": entries})}).map(json.dumps)


@given(st.binary(max_size=30) | document.map(json.dumps) | files)
def test_recorded_traffic(content: bytes | str) -> None:
    """Any file, and any HAR file."""
    answer = asked("--har", "-", stdin=content.encode() if isinstance(content, str) else content)
    for one in answer["requests"] if answer else ():
        check(one)
        assert one["group"] == "repeatable" or not one["repeatable"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any.har")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        shown = CliRunner().invoke(app, ["explain", str(path)], catch_exceptions=False)
    assert shown.exit_code == (2 if answer is None else 0)
