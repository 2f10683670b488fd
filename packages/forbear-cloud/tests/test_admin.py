"""The administration over HTTP, for other processes."""

import httpx
import pytest

from forbear_cloud import Cloud

UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"


def test_state_and_logs(cloud: Cloud, http: httpx.Client) -> None:
    """State, effects and requests can be read, and reading them is not logged."""
    http.post(UPLOAD, content=b"x", headers={"Authorization": "Bearer secret", "X-Goog-Gcs-Idempotency-Token": "t"})
    http.post("/upload/storage/v1/b/bkt/o?uploadType=resumable&name=p")
    assert http.get("/_cloud/health").json() == {"status": "ok"}
    state = http.get("/_cloud/state").json()
    assert [item["name"] for item in state["buckets"][0]["objects"]] == ["o"]
    assert state["uploads"] == [{"id": "upload-1", "bucket": "bkt", "name": "p", "received": 0}]
    (effect,) = http.get("/_cloud/effects").json()["effects"]
    assert (effect["operation"], effect["resource"], effect["token"]) == ("storage.objects.insert", "bkt/o", "t")
    requests = http.get("/_cloud/requests").json()
    assert (requests["total"], requests["requests"][0]["status"]) == (2, 200)
    assert "authorization" not in requests["requests"][0]["headers"]
    assert [request["authorized"] for request in requests["requests"]] == [True, False]


def test_state_of_the_other_apis(http: httpx.Client) -> None:
    """The state of IAM and Memorystore can be read and reset, and their faults can be added as JSON."""
    many = [{"action": "lag", "reads": 1}, {"action": "long_running", "polls": 9}]
    assert http.post("/_cloud/faults", json=many).json()["armed"] == 2
    http.post("/v1/projects/p/serviceAccounts", json={"accountId": "worker"})
    http.post("/v1/projects/p/roles", json={"roleId": "role"})
    http.post("/v1/projects/p:setIamPolicy", json={"policy": {}})
    http.post("/v1/projects/p/locations/l/instances?instanceId=i", json={"memorySizeGb": 1})
    http.post("/bkt/o?uploads")
    state = http.get("/_cloud/state").json()
    assert state["multipartUploads"] == [{"id": "multipart-3", "bucket": "bkt", "name": "o", "parts": []}]
    assert state["serviceAccounts"][0]["email"].startswith("worker@")
    assert (state["roles"][0]["name"], list(state["policies"])) == ("projects/p/roles/role", ["projects/p"])
    assert (state["memorystore"][0]["state"], state["operations"][0]["done"]) == ("CREATING", False)
    http.post("/_cloud/reset")
    assert not any(http.get("/_cloud/state").json().values())


def test_faults_are_added_and_removed(cloud: Cloud, http: httpx.Client) -> None:
    """Faults are added one by one or as a list, and all are removed at once."""
    assert http.post("/_cloud/faults", json={"action": "status", "code": 503}).json()["armed"] == 1
    many = [
        {"action": "reset", "header": ["x-a", "b"]},
        {"action": "random_faults", "seed": 1, "unavailable": 0.1, "path": "zzz"},
    ]
    assert http.post("/_cloud/faults", json=many).json() == {"status": "ok", "armed": 2}
    assert http.get("/storage/v1/b/bkt").status_code == 503
    assert http.get("/_cloud/state").json()["pendingFaults"] == 1
    assert http.delete("/_cloud/faults").status_code == 200
    assert cloud.pending_faults == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("{", "Parse Error"),
        ("5", "a fault must be a JSON object, got 5"),
        ('{"action": "explode"}', "`action` must be one of"),
        ('[{"action": "reset"}, {"action": "status"}]', "faults[1]: `code` is missing: 'status' needs it"),
        ('{"action": "random_faults"}', "`seed` is missing: 'random_faults' needs it"),
        ('{"action": "random_faults", "seed": 1, "rain": 1}', "`rain` is not a parameter of 'random_faults'; it takes"),
        ('{"action": "random_faults", "seed": 1, "times": 1}', "`times` does not fit random faults"),
        ('{"action": "status", "code": 503, "path": ["x"]}', "`path` must be a string or None"),
    ],
)
def test_bad_faults(cloud: Cloud, http: httpx.Client, body: str, text: str) -> None:
    """A wrong fault is a 400 that names the field, and no fault of the list is added."""
    response = http.post("/_cloud/faults", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(text)
    assert cloud.pending_faults == 0


def test_a_reset_forgets_everything(cloud: Cloud, http: httpx.Client) -> None:
    """A reset forgets everything, and the server keeps running."""
    http.post(UPLOAD, content=b"x")
    http.post("/_cloud/faults", json={"action": "reset"})
    assert http.post("/_cloud/reset").status_code == 200
    assert (len(cloud.effects), len(cloud.requests), cloud.pending_faults) == (0, 0, 0)
    assert http.get("/storage/v1/b?project=p").json() == {"kind": "storage#buckets"}


def test_an_unknown_path_lists_the_known_ones(http: httpx.Client) -> None:
    """An unknown path or method is refused, with a list of the known ones."""
    assert "health, state" in http.get("/_cloud/nope").json()["error"]["message"]
    response = http.get("/_cloud/reset")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
