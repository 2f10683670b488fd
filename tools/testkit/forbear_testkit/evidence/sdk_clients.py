"""SDKs as their users use them, without an adapter and without retries of their own: each sends one request."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from forbear_testkit.lazily import Library

aiobotocore: Any = Library("aiobotocore.session")
anthropic: Any = Library("anthropic")
azure: Any = Library("azure.storage.blob")
boto3: Any = Library("boto3")
botocore: Any = Library("botocore.config")
elasticsearch: Any = Library("elasticsearch")
google: Any = Library("google.cloud.storage")
credentials: Any = Library("google.auth.credentials")
kubernetes: Any = Library("kubernetes.client")
openai: Any = Library("openai")
opensearchpy: Any = Library("opensearchpy")
secret_manager: Any = Library("google.cloud.secretmanager_v1")
transports: Any = Library("google.cloud.secretmanager_v1.services.secret_manager_service.transports")
slack: Any = Library("slack_sdk")
stripe: Any = Library("stripe")
twilio: Any = Library("twilio.rest")

TIMEOUT = 5.0
XML = b"<?xml version='1.0'?><EnumerationResults><Containers/><NextMarker/></EnumerationResults>"


class Operation(NamedTuple):
    """One operation of a client.

    - `call` sends it to a URL, `method` and `path` are what the server sees.
    - `repeated` says whether a decorated function may send it again.
    - `answer` is the body of a response that the client accepts.
    """

    library: str
    call: Callable[[str], object]
    method: str
    path: str
    repeated: bool
    answer: bytes = b"{}"


def _aws(url: str) -> dict[str, Any]:
    return {
        "region_name": "us-east-1",
        "endpoint_url": url,
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
    }


def _dynamodb(name: str, **options: Any) -> Callable[[str], object]:
    def call(url: str) -> object:
        config = botocore.Config(retries={"total_max_attempts": 1}, read_timeout=TIMEOUT)
        with closing(boto3.client("dynamodb", config=config, **_aws(url))) as client:
            return getattr(client, name)(TableName="orders", **options)

    return call


def _adynamodb(name: str, **options: Any) -> Callable[[str], object]:
    async def call(url: str) -> object:
        config = botocore.Config(retries={"total_max_attempts": 1}, read_timeout=TIMEOUT)
        async with aiobotocore.get_session().create_client("dynamodb", config=config, **_aws(url)) as client:
            return await getattr(client, name)(TableName="orders", **options)

    return lambda url: asyncio.run(call(url))


def _llm(library: Any, path: str, work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        kind = library.OpenAI if library is openai else library.Anthropic
        with kind(api_key="k", base_url=f"{url}{path}", max_retries=0, timeout=TIMEOUT) as client:
            return work(client)

    return call


def _stream(client: Any) -> object:
    with client.messages.stream(max_tokens=9, **_ASK) as stream:
        return list(stream)


def _stripe(work: Callable[[str], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        module: Any = import_module("stripe")
        module.api_key, module.max_network_retries, module.api_base = "sk_test_k", 0, url
        return work(url)

    return call


def _slack(work: Callable[[Any], object]) -> Callable[[str], object]:
    return lambda url: work(slack.WebClient("t", base_url=f"{url}/api/", retry_handlers=[], timeout=5))


def _twilio(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        client = twilio.Client("AC1", "t")
        client.api.base_url = url
        return work(client)

    return call


def _kubernetes(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        configuration = kubernetes.Configuration()
        configuration.host, configuration.retries = url, False
        with kubernetes.ApiClient(configuration) as client:
            return work(client)

    return call


def _review(client: Any) -> object:
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    return kubernetes.AuthorizationV1Api(client).create_self_subject_access_review(body)


def _elastic(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        with closing(elasticsearch.Elasticsearch(url, max_retries=0, request_timeout=TIMEOUT)) as client:
            return work(client)

    return call


def _aelastic(work: Callable[[Any], Any]) -> Callable[[str], object]:
    async def call(url: str) -> object:
        async with elasticsearch.AsyncElasticsearch(url, max_retries=0, request_timeout=TIMEOUT) as client:
            return await work(client)

    return lambda url: asyncio.run(call(url))


def _opensearch(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        with closing(opensearchpy.OpenSearch(url, max_retries=0, timeout=TIMEOUT)) as client:
            return work(client)

    return call


def _azure(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        service = azure.BlobServiceClient(f"{url}/a", credential="aw==", retry_total=0, read_timeout=TIMEOUT)
        with service:
            return work(service)

    return call


def _append(service: Any) -> object:
    return service.get_blob_client("c", "b").append_block(b"x")


def _storage(work: Callable[[Any], object]) -> Callable[[str], object]:
    def call(url: str) -> object:
        options = {"api_endpoint": url}
        client = google.Client("p", credentials=credentials.AnonymousCredentials(), client_options=options)
        with closing(client):
            return work(client)

    return call


def _upload(client: Any, **conditions: int) -> object:
    return client.bucket("b").blob("o").upload_from_string(b"x", retry=None, timeout=TIMEOUT, **conditions)


@contextmanager
def _secrets(url: str) -> Generator[Any]:
    transport = transports.SecretManagerServiceRestTransport(
        host=urlsplit(url).netloc, url_scheme="http", credentials=credentials.AnonymousCredentials()
    )
    with secret_manager.SecretManagerServiceClient(transport=transport) as client:
        yield client


def _read_secret(url: str) -> object:
    with _secrets(url) as client:
        return client.get_secret(name="projects/p/secrets/s", retry=None, timeout=TIMEOUT)


def _add_version(url: str) -> object:
    with _secrets(url) as client:
        return client.add_secret_version(parent="projects/p/secrets/s", retry=None, timeout=TIMEOUT)


_KEY = {"k": {"S": "1"}}
_ADD = {"UpdateExpression": "ADD n :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}
_ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
_SECRET = "/v1/projects/p/secrets/s"
_QUERY: dict[str, Any] = {"match_all": {}}
_JSON = {"accept": "application/json", "content-type": "application/json"}

ALL: dict[str, Operation] = {
    "boto3 get": Operation("boto3", _dynamodb("get_item", Key=_KEY), "POST", "/", repeated=True),
    "boto3 add": Operation("boto3", _dynamodb("update_item", Key=_KEY, **_ADD), "POST", "/", repeated=False),
    "aiobotocore get": Operation("aiobotocore", _adynamodb("get_item", Key=_KEY), "POST", "/", repeated=True),
    "aiobotocore add": Operation(
        "aiobotocore", _adynamodb("update_item", Key=_KEY, **_ADD), "POST", "/", repeated=False
    ),
    "openai chat": Operation(
        "openai",
        _llm(openai, "/v1", lambda c: c.chat.completions.create(**_ASK)),
        "POST", "/v1/chat/completions", repeated=True,
    ),
    "openai embed": Operation(
        "openai",
        _llm(openai, "/v1", lambda c: c.embeddings.create(model="m", input="?", encoding_format="float")),
        "POST", "/v1/embeddings", repeated=True,
        answer=b'{"data": [{"embedding": [1.0], "index": 0, "object": "embedding"}]}',
    ),
    "openai file": Operation(
        "openai",
        _llm(openai, "/v1", lambda c: c.files.create(file=b"text", purpose="batch")),
        "POST", "/v1/files", repeated=False,
    ),
    "anthropic message": Operation(
        "anthropic",
        _llm(anthropic, "", lambda c: c.messages.create(max_tokens=9, **_ASK)),
        "POST", "/v1/messages", repeated=True,
    ),
    "anthropic stream": Operation(
        "anthropic", _llm(anthropic, "", _stream), "POST", "/v1/messages", repeated=True, answer=b""
    ),
    "stripe read": Operation(
        "stripe", _stripe(lambda _: stripe.Customer.retrieve("c")), "GET", "/v1/customers/c", repeated=True
    ),
    "stripe create": Operation(
        "stripe", _stripe(lambda _: stripe.Customer.create()), "POST", "/v1/customers", repeated=False
    ),
    "slack list": Operation(
        "slack_sdk",
        _slack(lambda c: c.conversations_list()),
        "POST", "/api/conversations.list", repeated=True, answer=b'{"ok": true}',
    ),
    "slack read by POST": Operation(
        "slack_sdk", _slack(lambda c: c.auth_test()), "POST", "/api/auth.test", repeated=True, answer=b'{"ok": true}'
    ),
    "slack post": Operation(
        "slack_sdk",
        _slack(lambda c: c.chat_postMessage(channel="c", text="t")),
        "POST", "/api/chat.postMessage", repeated=False, answer=b'{"ok": true}',
    ),
    "twilio read": Operation(
        "twilio",
        _twilio(lambda c: c.messages("SM1").fetch()),
        "GET", "/2010-04-01/Accounts/AC1/Messages/SM1.json", repeated=True,
    ),
    "twilio send": Operation(
        "twilio",
        _twilio(lambda c: c.messages.create(to="+1", from_="+2", body="t")),
        "POST", "/2010-04-01/Accounts/AC1/Messages.json", repeated=False,
    ),
    "kubernetes read": Operation(
        "kubernetes",
        _kubernetes(lambda c: kubernetes.CoreV1Api(c).read_namespace("n")),
        "GET", "/api/v1/namespaces/n", repeated=True,
    ),
    "kubernetes create": Operation(
        "kubernetes",
        _kubernetes(lambda c: kubernetes.CoreV1Api(c).create_namespace({"metadata": {"name": "n"}})),
        "POST", "/api/v1/namespaces", repeated=False,
    ),
    "kubernetes review": Operation(
        "kubernetes",
        _kubernetes(_review),
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", repeated=True,
        answer=b'{"spec": {}}',
    ),
    "elasticsearch get": Operation(
        "elasticsearch", _elastic(lambda c: c.get(index="i", id="1")), "GET", "/i/_doc/1", repeated=True
    ),
    "elasticsearch search": Operation(
        "elasticsearch", _elastic(lambda c: c.search(index="i", query=_QUERY)), "POST", "/i/_search", repeated=True
    ),
    "elasticsearch msearch": Operation(
        "elasticsearch", _elastic(lambda c: c.msearch(searches=[{}, {}])), "POST", "/_msearch", repeated=True
    ),
    "elasticsearch count": Operation(
        "elasticsearch", _elastic(lambda c: c.count(index="i", query=_QUERY)), "POST", "/i/_count", repeated=True
    ),
    "elasticsearch mget": Operation(
        "elasticsearch", _elastic(lambda c: c.mget(index="i", ids=["1"])), "POST", "/i/_mget", repeated=True
    ),
    "elasticsearch field_caps": Operation(
        "elasticsearch",
        _elastic(lambda c: c.field_caps(index="i", fields="a", index_filter=_QUERY)),
        "POST", "/i/_field_caps", repeated=True,
    ),
    "elasticsearch esql": Operation(
        "elasticsearch",
        _elastic(lambda c: c.perform_request("POST", "/_query", headers=_JSON, body={"query": "FROM i"})),
        "POST", "/_query", repeated=True,
    ),
    "elasticsearch put": Operation(
        "elasticsearch", _elastic(lambda c: c.index(index="i", id="1", document={})), "PUT", "/i/_doc/1", repeated=True
    ),
    "elasticsearch index": Operation(
        "elasticsearch", _elastic(lambda c: c.index(index="i", document={})), "POST", "/i/_doc", repeated=False
    ),
    "elasticsearch bulk": Operation(
        "elasticsearch", _elastic(lambda c: c.bulk(operations=[{"index": {}}, {}])), "PUT", "/_bulk", repeated=False
    ),
    "elasticsearch async search": Operation(
        "elasticsearch", _aelastic(lambda c: c.search(index="i", query=_QUERY)), "POST", "/i/_search", repeated=True
    ),
    "elasticsearch async index": Operation(
        "elasticsearch", _aelastic(lambda c: c.index(index="i", document={})), "POST", "/i/_doc", repeated=False
    ),
    "opensearch search": Operation(
        "opensearchpy", _opensearch(lambda c: c.search(index="i", body={})), "POST", "/i/_search", repeated=True
    ),
    "opensearch index": Operation(
        "opensearchpy", _opensearch(lambda c: c.index(index="i", body={})), "POST", "/i/_doc", repeated=False
    ),
    "azure list": Operation(
        "azure.storage", _azure(lambda c: list(c.list_containers())), "GET", "/a/", repeated=True, answer=XML
    ),
    "azure metadata": Operation(
        "azure.storage",
        _azure(lambda c: c.get_blob_client("c", "b").set_blob_metadata({})),
        "PUT", "/a/c/b", repeated=True,
    ),
    "azure append": Operation("azure.storage", _azure(_append), "PUT", "/a/c/b", repeated=False),
    "azure delete blobs": Operation(
        "azure.storage",
        _azure(lambda c: list(c.get_container_client("c").delete_blobs("a", "b"))),
        "POST", "/a/c", repeated=False,
    ),
    "storage read": Operation(
        "google.cloud.storage",
        _storage(lambda c: c.get_bucket("b", retry=None, timeout=TIMEOUT)),
        "GET", "/storage/v1/b/b", repeated=True,
    ),
    "storage upload": Operation(
        "google.cloud.storage", _storage(_upload), "POST", "/upload/storage/v1/b/b/o", repeated=False
    ),
    "storage create": Operation(
        "google.cloud.storage",
        _storage(lambda c: _upload(c, if_generation_match=0)),
        "POST", "/upload/storage/v1/b/b/o", repeated=True,
    ),
    "storage delete": Operation(
        "google.cloud.storage",
        _storage(lambda c: c.bucket("b").blob("o").delete(retry=None, timeout=TIMEOUT)),
        "DELETE", "/storage/v1/b/b/o/o", repeated=False, answer=b"",
    ),
    "secret read": Operation("google.cloud.secretmanager_v1", _read_secret, "GET", _SECRET, repeated=True),
    "secret add": Operation(
        "google.cloud.secretmanager_v1", _add_version, "POST", f"{_SECRET}:addVersion", repeated=False
    ),
}  # fmt: skip


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


_ITEMS = [{"_index": "i", "_source": {}}] * 2


def _post_to_webhook(url: str) -> None:
    response = slack.WebhookClient(url, timeout=5, retry_handlers=[]).send(text="t")
    if response.status_code != 200:
        raise RuntimeError(response.body)


BULKS: dict[str, Callable[[str], object]] = {
    "elasticsearch": _elastic(lambda c: import_module("elasticsearch.helpers").bulk(c, _ITEMS)),
    "opensearchpy": _opensearch(lambda c: import_module("opensearchpy.helpers").bulk(c, _ITEMS)),
}
"""Two documents by the helpers of the SDKs of search engines."""

SLACK_PAGES, SLACK_WEBHOOK = _slack(lambda c: list(c.conversations_list())), _post_to_webhook
"""All pages of a listing, and a message to a webhook whose client raises no error after a bad status."""


OPERATIONS = {name: each for name, each in ALL.items() if _is_installed(each.library)}
"""The operations whose clients are installed here."""
