"""IAM by hand: hosts, what is not known, and what responses mean."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import iam
from forbear.services.iam.service import DOCUMENTED, RECOMMENDED, Iam

HOST = "iam.googleapis.com"
CREDENTIALS = "iamcredentials.mtls.googleapis.com"
RPC = "google.iam."
TOKEN = "credentials.projects.serviceAccounts.generateIdToken"
BLOB = "credentials.projects.serviceAccounts.signBlob"
DELETE = "DeletePolicyBinding"
ACCOUNT = "/v1/projects/example.com:p/serviceAccounts/a@p.iam.gserviceaccount.com"
READ = Judgement("iam", None, Safety.ALWAYS, repeatable=True, mutation=False)
UNKNOWN = Judgement("iam", None, Safety.NEVER)
ABORTED = b'{"error": {"code": 409, "status": "ABORTED", "message": "concurrent policy changes"}}'
EXISTS = b'{"error": {"code": 409, "status": "ALREADY_EXISTS"}}'


def judge(line: str, *, host: str = HOST, headers: dict[str, str] | None = None, body: bytes = b"") -> Judgement:
    """The judgement on a request with the given request line."""
    method, _, target = line.partition(" ")
    return RECOMMENDED.classify(Request(method, host, target, headers, body))


@pytest.mark.parametrize(
    ("line", "host", "operation", "repeatable"),
    [
        (f"POST {ACCOUNT}:signBlob", HOST, "iam.projects.serviceAccounts.signBlob", True),
        (f"POST {ACCOUNT}%3AsignBlob", HOST, None, False),
        (f"POST {ACCOUNT}:signBlob", CREDENTIALS, f"iam{BLOB}", True),
        (f"POST {ACCOUNT}:generateIdToken", CREDENTIALS, f"iam{TOKEN}", True),
        (f"POST {ACCOUNT}:generateIdToken", HOST, None, False),
        (f"POST {ACCOUNT}/keys", HOST, "iam.projects.serviceAccounts.keys.create", False),
        (f"POST {ACCOUNT}/keys:upload", HOST, "iam.projects.serviceAccounts.keys.upload", False),
        (f"DELETE {ACCOUNT}/keys/1", HOST, "iam.projects.serviceAccounts.keys.delete", True),
        (f"POST {ACCOUNT}/keys", CREDENTIALS, None, False),
        ("DELETE /v2/policies/x%2Fprojects%2F1/denypolicies/p?etag=1", HOST, f"{RPC}v2.Policies/DeletePolicy", True),
        ("DELETE /v3/folders/1/locations/l/policyBindings/b", HOST, f"{RPC}v3.PolicyBindings/{DELETE}", False),
    ],
)  # fmt: skip
def test_the_host_says_which_api_a_path_belongs_to(
    line: str, host: str, operation: str | None, repeatable: bool
) -> None:
    """The host says which of the APIs a path belongs to."""
    judgement = judge(line, host=host)
    assert (judgement.operation, judgement.repeatable) == (operation, repeatable)


@pytest.mark.parametrize(
    "target",
    [
        f"{ACCOUNT}:unheardOf", f"{ACCOUNT}:signblob", f"{ACCOUNT}:", f"{ACCOUNT}:signBlob/",
        "/v1/projects/p/serviceAccounts/:signBlob", "/v1/projects/p/serviceAccounts/..:signBlob",
        "/v1/projects/../serviceAccounts/x", f"{ACCOUNT}#:signBlob", f"{ACCOUNT}?x=1#&y",
        "/v1beta1/projects/p/roles",
        "/v1/projects/p:setIamPolicy",
        "/v3/tenants/1/locations/l/policyBindings", "", "/",
    ],
)  # fmt: skip
def test_unknown_operations_are_reads_or_never_repeated(target: str) -> None:
    """A known API with an unknown call: not even PUT and DELETE are trusted."""
    for method in ("GET", "PUT", "DELETE", "POST", "PATCH"):
        assert judge(f"{method} {target}") == (READ if method == "GET" else UNKNOWN), method


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_method_overrides_are_not_trusted(header: str) -> None:
    """Nothing documents them here; one that names the method itself changes nothing."""
    assert judge(f"POST {ACCOUNT}", headers={header: "GET"}) == UNKNOWN
    assert judge(f"GET {ACCOUNT}", headers={header: "DELETE"}) == UNKNOWN
    assert judge(f"GET {ACCOUNT}", headers={header: "get"}).operation == "iam.projects.serviceAccounts.get"


def test_batches_are_refused() -> None:
    """The calls in a batch can be judged and repeated only one by one."""
    for target in ("/batch", "/batch/iam/v1"):
        assert "one by one" in (judge(f"POST {target}").refused or "")
    assert judge("POST /batches").refused is None


@pytest.mark.parametrize(
    ("status", "body", "recommended", "documented"),
    [
        (200, b"", None, None),
        (400, b"", PERMANENT, PERMANENT),
        (403, b"", PERMANENT, PERMANENT),
        (404, b"", PERMANENT, PERMANENT),
        (408, b"", TRANSIENT, PERMANENT),
        (409, ABORTED, CONFLICT, CONFLICT),
        (409, EXISTS, PERMANENT, PERMANENT),
        (409, b"", PERMANENT, PERMANENT),
        (409, b'{"error": "ABORTED"}', PERMANENT, PERMANENT),
        (409, b"[" * 100_000, PERMANENT, PERMANENT),
        (412, ABORTED, PERMANENT, PERMANENT),
        (429, b"", Verdict(Kind.TRANSIENT, throttled=True), PERMANENT),
        (500, ABORTED, TRANSIENT, TRANSIENT),
        (501, b"", PERMANENT, PERMANENT),
        (502, b"", TRANSIENT, TRANSIENT),
        (503, b"", Verdict(Kind.TRANSIENT, throttled=True), Verdict(Kind.TRANSIENT, throttled=True)),
        (504, b"", TRANSIENT, TRANSIENT),
    ],
)
def test_statuses_have_their_verdict(
    status: int, body: bytes, recommended: Verdict | None, documented: Verdict | None
) -> None:
    """The page lists 500, 502, 503 and 504; a 409 is a conflict only if its body says ABORTED."""
    judgement = judge(f"POST {ACCOUNT}:setIamPolicy")
    assert RECOMMENDED.verdict(judgement, status, {}, lambda: body) == recommended
    assert DOCUMENTED.verdict(judgement, status, {}, lambda: body) == documented


@pytest.mark.parametrize("line", [f"GET {ACCOUNT}", f"POST {ACCOUNT}:getIamPolicy"])
def test_a_read_has_no_conflicts(line: str) -> None:
    """ABORTED says to begin anew with a read, which a read is, over HTTP as over gRPC."""
    read, of_call = judge(line), RECOMMENDED.classify_call(GrpcCall("google.iam.admin.v1.IAM/GetIamPolicy"))
    for service in (RECOMMENDED, DOCUMENTED):
        assert service.verdict(read, 409, {}, lambda: ABORTED) == service.call_verdict(of_call, 10) == TRANSIENT
        assert service.verdict(read, 409, {}, lambda: EXISTS) is PERMANENT


def test_the_body_is_read_only_where_the_answer_hangs_on_it() -> None:
    """An adapter may pass a way to read it, or nothing; then a 409 is final."""
    judgement = judge(f"GET {ACCOUNT}")

    def body() -> bytes:
        raise AssertionError("not needed")

    for status in (200, 404, 412, 429, 503):
        RECOMMENDED.verdict(judgement, status, {}, body)
    assert RECOMMENDED.verdict(judgement, 409, {}) is PERMANENT


def test_what_is_not_found_may_still_appear() -> None:
    """404 on request, except where it is how a delete that worked looks the second time."""
    patient = Iam(retry_not_found=True)
    get, delete = judge(f"GET {ACCOUNT}"), judge(f"DELETE {ACCOUNT}")
    assert patient.verdict(get, 404, {}) is TRANSIENT
    assert patient.verdict(delete, 404, {}) is PERMANENT
    assert RECOMMENDED.verdict(get, 404, {}) is PERMANENT
    get = patient.classify_call(GrpcCall("/google.iam.admin.v1.IAM/GetRole"))
    delete = patient.classify_call(GrpcCall("/google.iam.admin.v1.IAM/DeleteServiceAccount"))
    assert patient.call_verdict(get, 5) is TRANSIENT
    assert patient.call_verdict(delete, 5) is PERMANENT
    assert RECOMMENDED.call_verdict(get, 5) is PERMANENT


def test_what_the_ends_of_calls_mean() -> None:
    """Codes mean what their HTTP statuses do; ABORTED is a conflict, except where nothing was to be changed."""
    write = RECOMMENDED.classify_call(GrpcCall("google.iam.admin.v1.IAM/SetIamPolicy"))
    read = RECOMMENDED.classify_call(GrpcCall("google.iam.admin.v1.IAM/GetIamPolicy"))
    throttled = Verdict(Kind.TRANSIENT, throttled=True)
    for code, recommended, documented in [
        (0, None, None), (4, TRANSIENT, TRANSIENT), (6, PERMANENT, PERMANENT), (8, throttled, PERMANENT),
        (9, PERMANENT, PERMANENT), (10, CONFLICT, CONFLICT), (13, TRANSIENT, TRANSIENT), (14, throttled, throttled),
    ]:  # fmt: skip
        assert RECOMMENDED.call_verdict(write, code) == recommended
        assert DOCUMENTED.call_verdict(write, code) == documented
    assert RECOMMENDED.call_verdict(read, 10) == TRANSIENT
    assert RECOMMENDED.classify_call(GrpcCall("google.iam.v1.IAMPolicy/SetPolicy")) == UNKNOWN


def test_services_can_be_compared_and_pickled() -> None:
    """Services with the same settings are equal, in any process."""
    patient = Iam(retry_not_found=True, statuses=frozenset({503}))
    assert pickle.loads(pickle.dumps(patient)) == patient != RECOMMENDED
    assert RECOMMENDED == Iam() == iam.Iam() != DOCUMENTED
    assert (RECOMMENDED.name, RECOMMENDED.token_header) == ("iam", None)
    with pytest.raises(AttributeError, match="has no attribute 'polciy'"):
        iam.polciy  # type: ignore[attr-defined]  # noqa: B018


SEGMENTS = st.sampled_from(
    [
        "v1", "v2", "v3", "projects", "p", "serviceAccounts", "a:signBlob", "keys", "roles", "r:undelete", "locations",
        "policies", "denypolicies", "", "..", ":", "%3A", "batch", "organizations", "policyBindings",
    ]
) | st.text(max_size=5)  # fmt: skip
BODIES = st.sampled_from([b'{"etag": "x"}', b'{"policy": {"etag": "x"}}', b"{", b""]) | st.binary(max_size=20)


@given(
    st.sampled_from(["GET", "PUT", "DELETE", "POST", "PATCH", "post", ""]) | st.text(max_size=6),
    st.lists(SEGMENTS, max_size=9),
    st.text(max_size=20) | st.just("etag=1"),
    st.none() | BODIES,
    st.sampled_from([HOST, "iamcredentials.googleapis.com", "localhost", "x.googleapis.com", ""]),
)
def test_no_request_raises_and_no_unknown_mutation_is_repeatable(
    method: str, segments: list[str], query: str, body: bytes | None, host: str
) -> None:
    """Whatever is sent is judged, and only what is known, or a plain read, may be repeated."""
    judgement = RECOMMENDED.classify(Request(method, host, "/" + "/".join(segments) + "?" + query, {}, body))
    if judgement.operation is None:
        assert judgement.repeatable is (not judgement.mutation)
    assert not judgement.repeatable or judgement.safety is Safety.ALWAYS or judgement.met is not None


@given(
    st.text(max_size=60),
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda it: st.dictionaries(st.sampled_from(["etag", "policy", "role"]), it),
    ),
)
def test_no_call_raises(method: str, message: object) -> None:
    """Whatever is called is judged, and an unknown RPC is never repeatable."""
    assert not RECOMMENDED.classify_call(GrpcCall(method, message)).repeatable
    judgement = RECOMMENDED.classify_call(GrpcCall("/google.iam.admin.v1.IAM/UpdateRole", message))
    assert judgement.repeatable is (judgement.met is not None)
