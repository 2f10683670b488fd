"""The clients of Kubernetes and Elasticsearch."""

from typing import Any

from forbear.clients.urllib3 import Retry
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.origin import Response
from tools.sdk_repeats.trials import Guarded, Library, Operation

elasticsearch: Any = Lazy("elasticsearch")
kubernetes: Any = Lazy("kubernetes.client")
urllib3: Any = Lazy("urllib3")
_JSON = (("Content-Type", "application/json"),)


def _make_kubernetes(url: str, mode: str) -> Any:
    settings = kubernetes.Configuration(host=url)
    if mode != "default":
        settings.retries = Retry() if mode == "forbear" else urllib3.Retry(0)
    return kubernetes.CoreV1Api(kubernetes.ApiClient(settings))


_POD: dict[str, Any] = {"metadata": {"generateName": "job-"}, "spec": {"containers": []}}
_CLAIM: dict[str, Any] = {"metadata": {"name": "c", "resourceVersion": "7"}, "data": {}}


def _make_elasticsearch(url: str, mode: str) -> Any:
    if mode == "default":
        return elasticsearch.Elasticsearch(url)
    client = elasticsearch.Elasticsearch(url, max_retries=0)
    return Guarded(client, unknown="stop") if mode == "forbear" else client


LIBRARIES = (
    Library(
        "kubernetes",
        ("kubernetes",),
        _make_kubernetes,
        "configuration.retries = urllib3.Retry(0)",
        "configuration.retries = forbear.clients.urllib3.Retry()",
        (
            Operation(
                "create_namespaced_pod with generateName",
                lambda api: api.create_namespaced_pod("n", _POD),
                "a second pod",
            ),
            Operation(
                "patch_namespaced_config_map",
                lambda api: api.patch_namespaced_config_map("c", "n", [{"op": "add", "path": "/l/-", "value": "x"}]),
                "adds twice",
            ),
            Operation(
                "replace_namespaced_config_map with resourceVersion",
                lambda api: api.replace_namespaced_config_map("c", "n", _CLAIM),
                "fails, although it has written",
            ),
            Operation(
                "delete_namespaced_pod", lambda api: api.delete_namespaced_pod("p", "n"), "fails, or deletes a new one"
            ),
            Operation(
                "delete_collection_namespaced_pod",
                lambda api: api.delete_collection_namespaced_pod("n"),
                "deletes what came meanwhile",
            ),
        ),
        lambda request: Response(200, b"{}", _JSON),
    ),
    Library(
        "elasticsearch",
        ("elasticsearch", "elastic-transport"),
        _make_elasticsearch,
        "Elasticsearch(url, max_retries=0)",
        '@forbear.retry(forbear.transient, unknown="stop"), with max_retries=0',
        (
            Operation("index", lambda api: api.index(index="i", document={"a": 1}), "a second document"),
            Operation("index with an id", lambda api: api.index(index="i", id="1", document={"a": 1}), ""),
            Operation(
                "create", lambda api: api.create(index="i", id="1", document={}), "fails, although it has written"
            ),
            Operation(
                "bulk of documents without ids",
                lambda api: api.bulk(operations=[{"index": {"_index": "i"}}, {"a": 1}]),
                "second documents",
            ),
            Operation(
                "update with a script that counts",
                lambda api: api.update(index="i", id="1", script={"source": "ctx._source.n += 1"}),
                "counts twice",
            ),
            Operation(
                "update_by_query",
                lambda api: api.update_by_query(index="i", script={"source": "ctx._source.n += 1"}),
                "counts twice",
            ),
            Operation(
                "delete_by_query",
                lambda api: api.delete_by_query(index="i", query={"match_all": {}}),
                "deletes what came meanwhile",
            ),
            Operation("reindex", lambda api: api.reindex(source={"index": "i"}, dest={"index": "j"}), "runs twice"),
        ),
        lambda request: Response(
            200, b'{"took": 1, "errors": false, "items": []}', (*_JSON, ("X-Elastic-Product", "Elasticsearch"))
        ),
        note='After an error of the server, forbear does not see the request of this client. By `unknown="stop"` no '
        "call is repeated of which it sees none; without it, all of these are executed twice after a 503. The client "
        "sends a bulk as PUT, which forbear repeats as RFC 9110 allows.",
    ),
)
