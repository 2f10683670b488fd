"""`forbear explain` for every service: requests of all their APIs, gRPC calls and Redis commands."""

import json

import pytest

from forbear.core.decide import Wait, decide
from forbear.core.verdict import TRANSIENT, Kind
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, is_rpc_service
from forbear.services import iam, redis
from forbear_testkit.cli.running import Invoke, explained, retried

IAM, REDIS = "https://iam.googleapis.com/v1/projects/p", "https://redis.googleapis.com/v1/projects/p/locations/l"
VALKEY = "https://memorystore.googleapis.com/v1/projects/p/locations/l"
STORAGE = "google.storage.v2.Storage"
A_UUID = "4f1dd7c4-8f7f-4a0c-9f5e-3a4f5a8f8b1d"


@pytest.mark.parametrize(
    ("args", "service", "operation", "safety", "repeatable"),
    [
        (("GET", f"{IAM}/serviceAccounts/a"), "iam", "iam.projects.serviceAccounts.get", "always", True),
        (("POST", f"{IAM}/roles/r:undelete"), "iam", "iam.projects.roles.undelete", "conditional", False),
        (("POST", f"{IAM}/roles/r:undelete", "-d", '{"etag": "B"}'), "iam", "iam.projects.roles.undelete",
         "conditional", True),
        (("POST", f"{IAM}/serviceAccounts/a/keys"), "iam", "iam.projects.serviceAccounts.keys.create", "never", False),
        (("POST", f"{IAM}/unheard-of"), "iam", None, "never", False),
        (("POST", "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a:signBlob"), "iam",
         "iamcredentials.projects.serviceAccounts.signBlob", "always", True),
        (("DELETE", f"{REDIS}/clusters/c"), "memorystore", "redis.projects.locations.clusters.delete", "conditional",
         False),
        (("DELETE", f"{REDIS}/clusters/c?requestId={A_UUID}"), "memorystore",
         "redis.projects.locations.clusters.delete", "conditional", True),
        (("GET", f"{VALKEY}/instances/i"), "memorystore", "google.cloud.memorystore.v1.Memorystore/GetInstance",
         "always", True),
        (("PUT", "https://storage.googleapis.com/bkt/a"), "cloud_storage", "xml.object.put", "conditional", False),
        (("PUT", "https://storage.googleapis.com/bkt/a", "-H", "x-goog-if-generation-match: 0"), "cloud_storage",
         "xml.object.put", "conditional", True),
        (("PUT", "https://bkt.storage.googleapis.com/a", "-H", "X-Goog-If-Generation-Match: 0"), "cloud_storage",
         "xml.object.put", "conditional", True),
        (("GET", "https://bkt.storage.googleapis.com/?acl"), "cloud_storage", "xml.bucket.get.acl", "always", True),
        (("curl", "-T", "f", "https://bkt.storage.googleapis.com/", "-H", "x-goog-if-generation-match:0"),
         "cloud_storage", "xml.object.put", "conditional", True),
        (("POST", "https://bkt.storage.googleapis.com/a?uploads"), "cloud_storage",
         "xml.object.post.uploads", "never", False),
        (("grpc", f"{STORAGE}/GetObject"), "cloud_storage", f"{STORAGE}/GetObject", "always", True),
        (("grpc", f"/{STORAGE}/DeleteObject", "bucket=b"), "cloud_storage", f"{STORAGE}/DeleteObject", "conditional",
         False),
        (("grpc", f"{STORAGE}/DeleteObject", "if_generation_match=0", "bucket=b"), "cloud_storage",
         f"{STORAGE}/DeleteObject", "conditional", True),
        (("grpc", f"{STORAGE}/DeleteObject", "ifGenerationMatch=0"), "cloud_storage", f"{STORAGE}/DeleteObject",
         "conditional", True),
        (("grpc", f"{STORAGE}/DeleteObject", "generation=0"), "cloud_storage", f"{STORAGE}/DeleteObject",
         "conditional", False),
        (("grpc", f"{STORAGE}/SetIamPolicy", "policy.etag=B"), "cloud_storage", f"{STORAGE}/SetIamPolicy",
         "conditional", True),
        (("grpc", f"{STORAGE}/SetIamPolicy", "--json-fields", '{"policy": {"etag": "QQ=="}}'), "cloud_storage",
         f"{STORAGE}/SetIamPolicy", "conditional", True),
        (("grpc", f"{STORAGE}/SetIamPolicy", "--json-fields", '{"policy": {"etag": "QQ=="}, "updateMask": "etag"}'),
         "cloud_storage", f"{STORAGE}/SetIamPolicy", "conditional", False),
        (("grpc", f"{STORAGE}/WriteObject", "--json-fields", '{"writeObjectSpec": {"ifGenerationMatch": 0}}'),
         "cloud_storage", f"{STORAGE}/WriteObject", "conditional", True),
        (("grpc", f"{STORAGE}/WriteObject", "--json-fields", '{"writeObjectSpec": {"resource": {"name": "a"}}}',
          "write_object_spec.if_generation_match=7"), "cloud_storage", f"{STORAGE}/WriteObject", "conditional", True),
        (("grpc", f"{STORAGE}/Unheard"), "cloud_storage", None, "never", False),
        (("grpc", "google.iam.admin.v1.IAM/CreateServiceAccountKey"), "iam",
         "google.iam.admin.v1.IAM/CreateServiceAccountKey", "never", False),
        (("grpc", "google.cloud.redis.v1.CloudRedis/GetInstance"), "memorystore",
         "google.cloud.redis.v1.CloudRedis/GetInstance", "always", True),
        (("grpc", "pay.v1.Payments/Pay", "amount=1"), "grpc", "pay.v1.Payments/Pay", "never", False),
        (("grpc", "google.longrunning.Operations/GetOperation", "--service", "iam"), "iam",
         "google.longrunning.Operations/GetOperation", "always", True),
        (("redis", "GET", "k"), "redis", "GET", "always", True),
        (("redis", "set", "k", "v"), "redis", "SET", "conditional", True),
        (("redis", "SET", "k", "v", "NX"), "redis", "SET", "conditional", False),
        (("redis", "SET", "k", "NX"), "redis", "SET", "conditional", True),
        (("redis", 'SET k "v NX"'), "redis", "SET", "conditional", True),
        (("redis", "INCR", "k"), "redis", "INCR", "never", False),
        (("redis", "LTRIM", "k", "0", "-1"), "redis", "LTRIM", "conditional", True),
        (("redis", "CLIENT LIST"), "redis", "CLIENT LIST", "always", True),
        (("redis", "CLIENT", "KILL", "ID", "7"), "redis", "CLIENT KILL", "conditional", True),
        (("redis", "EXEC"), "redis", "EXEC", "conditional", False),
        (("redis", "UNHEARD", "k", "--json"), "redis", None, "never", False),
    ],
)  # fmt: skip
def test_what_may_be_repeated(
    args: tuple[str, ...], service: str, operation: str | None, safety: str, repeatable: bool, invoke: Invoke
) -> None:
    """Every kind of input finds its service and operation, and its failures follow from the one decision."""
    document = explained(invoke, *args)
    found = tuple(document[key] for key in ("service", "operation", "safety", "repeatable"))
    assert found == (service, operation, safety, repeatable)
    assert bool(document["conditions"]) == (safety == "conditional")
    certain, lost, *_ = (outcome["retried"] for outcome in document["failures"])
    assert (certain, lost) == (True, repeatable)
    assert invoke("explain", *args).exit_code == 0


def test_iam_tells_its_two_409s_apart(invoke: Invoke) -> None:
    """ABORTED calls for the whole read-modify-write, ALREADY_EXISTS is final; so do the codes of gRPC."""
    http = explained(invoke, "POST", f"{IAM}/serviceAccounts/a:setIamPolicy", "-d", '{"policy": {"etag": "B"}}')
    rpc = explained(invoke, "grpc", "google.iam.admin.v1.IAM/SetIamPolicy", "policy.etag=B")
    for document, prefix in ((http, "409 "), (rpc, "")):
        why = {outcome["failure"]: outcome["why"] for outcome in document["failures"]}
        assert document["repeatable"] is True
        assert "read-modify-write" in why[f"{prefix}ABORTED"]
        assert why[f"{prefix}ALREADY_EXISTS"] == "the error is permanent"
        assert "conflict" not in why


def test_verdicts_on_responses_of_redis(invoke: Invoke) -> None:
    """Commands that were not executed are always retried, lost responses by the table, and a wrong type never."""
    found = retried(explained(invoke, "redis", "INCR", "k"))
    before = ("LOADING", "MOVED", "ASK", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "ERR max number of clients reached")
    assert all(found[reply] for reply in before)
    assert not any(found[reply] for reply in ("reset or timeout after sending", "WRONGTYPE", "NOAUTH", "OOM"))
    assert "NOSCRIPT" not in found
    script = retried(explained(invoke, "redis", "EVALSHA", "0" * 40, "0"))
    assert not any(script[response] for response in (*before, "NOSCRIPT"))  # scripts send any error, also after writes
    assert script["connection refused, DNS or TLS failure"] is True
    why = {outcome["failure"]: outcome["why"] for outcome in explained(invoke, "redis", "EXEC")["failures"]}
    assert why["EXECABORT"] == "the error is permanent"
    assert "read-modify-write" in why["nil, because a watched key changed"]
    assert why["READONLY"] == "it was not executed; on a new connection"
    assert why["MOVED"] == "it was not executed; at once, on the node that the response names"


@pytest.mark.parametrize("command", [["GET", "k"], ["INCR", "k"], ["SET", "k", "v", "NX"], ["MIGRATE", "h"], ["FOO"]])
def test_the_answers_for_redis_are_the_decisions(command: list[str], invoke: Invoke) -> None:
    """Failures are reported as retried if and only if `decide` retries them."""
    judgement, policy = redis.classify(command), redis.policy
    for failure, answered in retried(explained(invoke, "redis", *command)).items():
        if not failure[:2].isupper():
            continue  # no response
        verdict = redis.verdict_of_response(failure)
        if judgement.scripted and verdict.kind is Kind.NOT_EXECUTED:
            verdict = TRANSIENT
        step = decide(
            policy.limits, policy.backoff, verdict, attempt=1, elapsed=0, u=0.5, repeatable=judgement.repeatable
        )
        assert answered == isinstance(step, Wait), failure


@pytest.mark.parametrize("profile", ["policy", "documented"])
@pytest.mark.parametrize("method", ["GetRole", "CreateServiceAccountKey", "UnheardOf"])
def test_the_answers_for_grpc_are_the_decisions(method: str, profile: str, invoke: Invoke) -> None:
    """Failures are reported as retried if and only if `decide` retries them, in both profiles."""
    call = GrpcCall(f"google.iam.admin.v1.IAM/{method}")
    policy = iam.policy if profile == "policy" else iam.documented
    service: object = policy.service
    assert is_rpc_service(service)
    judgement = service.classify_call(call)
    found = retried(explained(invoke, "grpc", call.method, "--profile", profile))
    for name, number in codes.NUMBERS.items():
        verdict = service.call_verdict(judgement, number)
        if verdict is None:
            assert name not in found
            continue
        step = decide(
            policy.limits, policy.backoff, verdict, attempt=1, elapsed=0, u=0.5, repeatable=judgement.repeatable
        )
        assert found[name] == isinstance(step, Wait), name
    assert found["RESOURCE_EXHAUSTED"] == (profile == "policy" and method == "GetRole")


def test_the_text_for_calls_and_commands(invoke: Invoke) -> None:
    """The text says what a duplicate does, its source, and further remarks."""
    text = invoke("explain", "grpc", f"{STORAGE}/DeleteObject").stdout
    assert "gRPC google.storage.v2.Storage/DeleteObject\n" in text
    assert "conditions  if_generation_match or generation (met: none)\n" in text
    assert "duplicate   deletes a newer object, or hides one more version\n" in text
    assert "NOT_FOUND, FAILED_PRECONDITION on a later attempt may mean that an earlier attempt worked\n" in text
    text = invoke("explain", "redis", "AUTH", "x").stdout
    assert text.startswith("Redis AUTH (1 argument)\n")
    assert "source      our judgement\n" in text
    assert "its effect ends with the connection" in text
    text = invoke("explain", "redis", "CONFIG", "SET", "maxmemory", "1").stdout
    assert text.startswith("Redis CONFIG SET (2 arguments)\n")
    assert "Memorystore for Redis does not offer this command\n" in text


def test_the_definition_of_an_rpc(invoke: Invoke) -> None:
    """The word grpc may be left out; the answer names the rule; a module with the definition of an RPC is imported."""
    rpc = "/google.longrunning.Operations/GetOperation"
    text = invoke("explain", rpc, "name=a").stdout
    assert "source      its HTTP binding is GET; googleapis at " in text
    document = explained(invoke, rpc)
    assert (document["repeatable"], document["mutation"]) == (True, False)
    later = ("/google.longrunning.Operations/CancelOperation", "--import", "google.longrunning.operations_pb2")
    assert explained(invoke, *later)["source"] == "no rule for Google's APIs says that it may be"
    never = explained(invoke, "/pay.v1.Payments/Pay")
    assert (never["repeatable"], never["source"]) == (False, "no module with its definition is loaded")


@pytest.mark.parametrize(
    "args",
    [
        ("redis", "AUTH", "SECRET"),
        ("redis", "AUTH SECRET"),
        ("redis", "HELLO", "3", "AUTH", "default", "SECRET"),
        ("redis", "CONFIG", "SET", "requirepass", "SECRET"),
        ("redis", "ACL", "SETUSER", "a", ">SECRET"),
        ("redis", "SET", "SECRET", "SECRET"),
        ("redis", "not a command: SECRET", "SECRET"),
        ("grpc", f"{STORAGE}/WriteObject", "upload_id=SECRET"),
        ("grpc", f"{STORAGE}/WriteObject", "--json-fields", '{"uploadId": "SECRET"}'),
        ("grpc", f"{STORAGE}/WriteObject", "SECRET"),
        ("grpc", f"{STORAGE}/WriteObject", "--json-fields", '"SECRET"'),
        ("grpc", f"{STORAGE}/WriteObject", "--json-fields", '{"a": SECRET}'),
        ("grpc", f"{STORAGE}/WriteObject", "--json-fields", '{"SECRET": 1, "SECRET": 2}'),
        ("PUT", "https://bkt.storage.googleapis.com/a?upload_id=SECRET", "-H", "Authorization: SECRET"),
        ("GET", "https://bkt.storage.googleapis.com/a?X-Goog-Signature=SECRET&X-Goog-Credential=SECRET"),
    ],
)
def test_no_secret_is_repeated(args: tuple[str, ...], invoke: Invoke) -> None:
    """Arguments, values of fields and queries are printed in no form of output, and in no error."""
    for form in ((), ("--json",)):
        done = invoke("explain", *form, *args)
        assert "SECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("grpc",), "error: a call is a method and fields, got no method\nhint: such as: forbear explain grpc google"),
        (("grpc", "DeleteObject"), "error: the method of a call is package.Service/Method\n"),
        (("grpc", "a.B/C", "x"), "error: field 1 is not a field"),
        (("grpc", "a.B/C", "x=1", "=2"), "error: field 2 is not a field"),
        (("grpc", "a.B/C", "x=1", "x=2"), "error: the field x is set twice\n"),
        (("grpc", "a.B/C", "x=1", "x.y=2"), "error: the field x.y is set twice\n"),
        (("grpc", "a.B/C", "--json-fields", "{"), "error: `--json-fields` must be a JSON object: it cannot be read\n"),
        (("grpc", "a.B/C", "--json-fields", "[]"), "error: `--json-fields` must be a JSON object, got another value\n"),
        (
            ("grpc", "a.B/C", "--json-fields", '{"aB": 1, "a_b": 2}'),
            "error: `--json-fields` must be a JSON object: a field is set twice\nhint: leave one of them out\n",
        ),
        (
            ("/a.B/C", "--import", "forbear_unheard_of"),
            "error: `--import` must name a module that can be imported, got ",
        ),
        (("/a.B", "x=1"), "error: the method of a call is package.Service/Method\n"),
        (("--import", "json", "redis", "GET", "k"), "error: `--import` does not go with a Redis command\n"),
        (("grpc", "a.B/C", "--service", "redis"), "error: redis does not judge gRPC calls\n"),
        (("grpc", "a.B/C", "--service", "s4"), "error: no such service: s4\nhint: the services are cloud_storage, "),
        (("grpc", "a.B/C", "-d", "x"), "error: `--data` does not go with a gRPC call\n"),
        (("redis",), "error: a command must have a name, got none\n"),
        (("redis", ""), "error: a command must have a name, got none\n"),
        (("redis", " "), "error: a command must have a name, got none\n"),
        (("redis", "SET k 'v"), "error: the command cannot be read: no closing quotation\n"),
        (("--profile", "documented", "redis", "GET", "k"), "error: no such profile: redis.documented\n"),
        (("--service", "iam", "redis", "GET", "k"), "error: `--service` does not go with a Redis command\n"),
    ],
)
def test_bad_input(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """Bad input is refused in words, with a cure and exit code 2."""
    done = invoke("explain", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert "\nhint: " in done.stderr


def test_nobody_is_told_of_what_does_not_happen(invoke: Invoke, caplog: pytest.LogCaptureFixture) -> None:
    """The failures that are explained are none of the program's."""
    assert invoke("explain", "GET", "https://storage.googleapis.com/storage/v1/b").exit_code == 0
    assert caplog.records == []


def test_what_cannot_be_written_is_spelt_out(invoke: Invoke) -> None:
    """A word that is no text is neither an error nor lost."""
    done = invoke("explain", "GET", "https://x\udcff/\udcff")
    assert done.exit_code == 0
    assert done.stdout.startswith("GET x\\udcff/%ED%B3%BF\n")
    assert json.loads(invoke("explain", "--json", "redis", "\udcff").stdout)["request"]["command"] == "a command"


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (("redis", "incr", "k"), 'safe="INCR"'),
        (("redis", "CLUSTER FAILOVER"), 'safe="CLUSTER FAILOVER"'),
        (("redis", "mymodule.run", "k"), 'safe="MYMODULE.RUN"'),
        (("grpc", "pay.v1.Payments/Pay"), 'safe="/pay.v1.Payments/Pay"'),
        (("grpc", "/google.iam.admin.v1.IAM/CreateServiceAccountKey"),
         'safe="/google.iam.admin.v1.IAM/CreateServiceAccountKey"'),
        (("redis", "GET", "k"), None),
        (("redis", "SET", "k", "v", "NX"), None),
        (("redis", "EXEC"), None),
        (("redis", "EVALSHA", "abc", "0"), None),
        (("grpc", f"{STORAGE}/GetObject"), None),
        (("grpc", f"{STORAGE}/DeleteObject"), None),
    ],
)  # fmt: skip
def test_how_to_vouch(args: tuple[str, ...], option: str | None, invoke: Invoke) -> None:
    """The words to paste are printed where only the user's word can help."""
    output = " ".join(invoke("explain", *args).stdout.split())
    assert ("if a repeat does no harm, vouch" in output) is (option is not None)
    assert option is None or f"with {option}" in output


@pytest.mark.parametrize(
    ("args", "operation", "why"),
    [
        (("google", "pubsub.Publish"), "google.pubsub.v1.Publisher/Publish", "publishes the messages a second time"),
        (("google", "pubsub.Publisher.GetTopic"), "google.pubsub.v1.Publisher/GetTopic", "its HTTP binding is GET"),
        (("google", "pubsub.Publisher/GetTopic"), "google.pubsub.v1.Publisher/GetTopic", "googleapis at"),
        (("google", "tasks.CreateTask", "task.name=t"), "google.cloud.tasks.v2.CloudTasks/CreateTask", "a task with"),
        (("POST", "https://pubsub.googleapis.com/v1/projects/p/topics/t:publish"), None,
         "as google.pubsub.v1.Publisher/Publish: it publishes the messages a second time"),
        (("POST", "https://cloudtasks.googleapis.com/v2/projects/p/locations/l/queues/q/tasks"), None,
         "as google.cloud.tasks.v2.CloudTasks/CreateTask: "),
        (("GET", "https://pubsub.googleapis.com/v1/projects/p/topics/t"), None,
         "as google.pubsub.v1.Publisher/GetTopic: its HTTP binding is GET"),
    ],
)  # fmt: skip
def test_google_s_rpcs_by_a_part_of_their_name_and_by_url(
    args: tuple[str, ...], operation: str | None, why: str, invoke: Invoke
) -> None:
    """The rule that answers is named with its source; a request to a JSON API shows that of its RPC."""
    document = explained(invoke, *args)
    assert document["operation"] == operation
    assert why in document["source"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pubsub.Publisj", "no known RPC of Google is 'pubsub.Publisj'"),
        ("Publish", "no known RPC of Google is 'Publish'"),
        ("compute.Get", "compute.Get may be "),
    ],
)
def test_a_part_of_a_name_that_is_not_one_rpc(name: str, text: str, invoke: Invoke) -> None:
    """A wrong or ambiguous name is an error with its cure."""
    result = invoke("explain", "google", name)
    assert result.exit_code == 2
    assert text in result.stderr
