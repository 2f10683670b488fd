"""Finding the operation that a request asks for, and whether it may be executed twice."""

from functools import partial

from benchmarks.measure import Effort, Sampler, race, repeated
from benchmarks.table import Table
from forbear.http.request import Request
from forbear.services import find

_JSON = "storage.googleapis.com"
_REQUESTS = {
    "read of an object": Request("GET", _JSON, "/storage/v1/b/bucket/o/photos%2Fcat.jpg?alt=media"),
    "upload under a condition": Request(
        "POST", _JSON, "/upload/storage/v1/b/bucket/o?uploadType=media&name=cat&ifGenerationMatch=0"
    ),
    "delete without one": Request("DELETE", _JSON, "/storage/v1/b/bucket/o/photos%2Fcat.jpg"),
    "bucket policy with an etag": Request(
        "PUT",
        _JSON,
        "/storage/v1/b/bucket/iam",
        {"content-type": "application/json"},
        b'{"etag": "CAE=", "bindings": []}',
    ),
    "nothing that is known": Request("POST", _JSON, "/storage/v1/b/bucket/unheard/of"),
}


def classify(effort: Effort) -> Table:
    """Requests to Cloud Storage, and finding the service by its host."""
    samplers: dict[str, Sampler] = {"find the service": repeated(partial(find, _JSON, "/storage/v1/b"))}
    for name, request in _REQUESTS.items():
        service = find(request.host, request.target)
        if service is None:
            raise LookupError(f"no service answers on {request.host}")
        samplers[name] = repeated(partial(service.classify, request))
    return Table("classify", "Classify a request to Cloud Storage", "us", 1e6, race(samplers, effort))
