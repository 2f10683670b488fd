"""Finding the operation that a request or a command asks for, and whether it may be executed twice."""

import json
from functools import partial
from typing import Any

from benchmarks.measure import Effort, Sampler, race, repeated
from benchmarks.table import Table
from forbear.answers.aws import parse_call
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import find, find_rpc
from forbear.services.aws import classify as classify_call
from forbear.services.redis import classify as classify_command

_JSON = "storage.googleapis.com"


def _account_policy(count: int) -> Request:
    """Writing a policy with that many bindings; the etag is looked for in the whole body."""
    bindings = [{"role": f"roles/viewer{index}", "members": [f"user:u{index}@example.com"]} for index in range(count)]
    return Request(
        "POST",
        "iam.googleapis.com",
        "/v1/projects/p/serviceAccounts/a@p.iam.gserviceaccount.com:setIamPolicy",
        {"content-type": "application/json"},
        json.dumps({"policy": {"etag": "CAE=", "bindings": bindings}}).encode(),
    )


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
    "XML upload under a condition": Request(
        "PUT", "bucket.storage.googleapis.com", "/photos/cat.jpg", {"x-goog-if-generation-match": "0"}
    ),
    "XML part of an upload": Request("PUT", _JSON, "/bucket/cat.jpg?partNumber=3&uploadId=VXBsb2Fk"),
    "account policy with an etag and 1 binding": _account_policy(1),
    "account policy with an etag and 20 bindings": _account_policy(20),
    "instance update with a request id": Request(
        "PATCH",
        "memorystore.googleapis.com",
        "/v1/projects/p/locations/l/instances/i?requestId=c8b4a1de-7d0f-4c6e-9c55-0f2d8f1b3a11",
    ),
}
_CALLS = {
    "delete over gRPC": GrpcCall("/google.storage.v2.Storage/DeleteObject", {"if_generation_match": 0}),
}
_UPDATE = {
    "TableName": "t",
    "Key": {"k": {"S": "1"}},
    "ExpressionAttributeNames": {"#name": "name"},
    "ExpressionAttributeValues": {":n": {"N": "2"}, ":o": {"N": "1"}, ":s": {"S": "x"}},
}
_UPDATES: dict[str, dict[str, Any]] = {
    "UpdateItem that sets values": {"UpdateExpression": "SET #name = :s, b = :n"},
    "UpdateItem that counts under a condition": {
        "UpdateExpression": "SET v = :n ADD c :n",
        "ConditionExpression": "v = :o",
    },
}
_COMMANDS = {
    "Redis command": ("SET", "key", "value", "PX", 1000, "NX"),
}


def classify(effort: Effort) -> Table:
    """Requests to known services, commands of Redis, calls of AWS, and finding the service by its host."""
    samplers: dict[str, Sampler] = {"find the service": repeated(partial(find, _JSON, "/storage/v1/b"))}
    for name, request in _REQUESTS.items():
        service = find(request.host, request.target)
        if service is None:
            raise LookupError(f"no service answers on {request.host}")
        samplers[name] = repeated(partial(service.classify, request))
    for name, call in _CALLS.items():
        known = find_rpc(call.method)
        if known is None:
            raise LookupError(f"no service knows {call.method}")
        samplers[name] = repeated(partial(known.classify_call, call))
    for name, command in _COMMANDS.items():
        samplers[name] = repeated(partial(classify_command, command))
    for name, parameters in _UPDATES.items():
        update = parse_call(("dynamodb", "UpdateItem"), {**_UPDATE, **parameters})
        samplers[name] = repeated(partial(classify_call, update.model, update.parameters))
    return Table("classify", "Classify a request to a known service", "us", 1e6, race(samplers, effort))
