"""If-Match on writes to Cloud Storage: the retry page counts it as a condition, the recommended profile does not."""

from typing import Any

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "objects.patch": ("PATCH", "/storage/v1/b/bkt/o/o", {"metadata": {"a": "b"}}),
    "objects.update": ("PUT", "/storage/v1/b/bkt/o/o", {"metadata": {"a": "b"}}),
    "buckets.patch": ("PATCH", "/storage/v1/b/bkt", {"labels": {"a": "b"}}),
    "buckets.update": ("PUT", "/storage/v1/b/bkt", {"labels": {"a": "b"}}),
    "buckets.setIamPolicy": ("PUT", "/storage/v1/b/bkt/iam", {"bindings": []}),
    "projects.hmacKeys.update": ("PUT", "/storage/v1/projects/p/hmacKeys/KEY", {"state": "INACTIVE"}),
}


@pytest.mark.parametrize("profile", ["documented", "policy"])
@pytest.mark.parametrize("operation", WRITES)
def test_a_lost_response(cloud: Cloud, operation: str, profile: str) -> None:
    """No write is executed twice: one profile repeats it and a server that heeds the header refuses, one does not."""
    cloud.store.put("bkt", "o", b"x")
    method, path, body = WRITES[operation]
    path = path.replace("KEY", cloud.store.create_hmac_key("p", "a@b").access_id)
    transport = RetryTransport(getattr(cloud_storage, profile), transport=httpx.HTTPTransport(verify=False))
    with httpx.Client(transport=transport, base_url=cloud.url) as client, virtual_time():
        headers = {"If-Match": f'"{client.get(path).json()["etag"]}"'}
        before = cloud.requests.total
        cloud.fault(Fault.reset(when="after"))
        if profile == "policy":
            with pytest.raises(httpx.ReadError) as caught:
                client.request(method, path, json=body, headers=headers)
            report = forbear.report(caught.value)
        else:
            response = client.request(method, path, json=body, headers=headers)
            assert response.status_code == 412
            report = forbear.report(response)
    assert report is not None
    assert report.maybe_done is (profile == "documented")
    assert (cloud.requests.total - before, cloud.effects.total) == (1 if profile == "policy" else 2, 1)
