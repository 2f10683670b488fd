"""The response to a second attempt while the job that the first one started is under way, through a real client."""

import httpx

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.services import memorystore
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

PLACE = "/v1/projects/p/locations/l"


def test_a_delete_that_had_worked_is_told_from_a_failure() -> None:
    """The user vouches for it; the second attempt is refused for the job of the first, and the report says so."""
    with Cloud() as cloud, virtual_time(seed=7):
        body = {"memorySizeGb": 1, "tier": "BASIC"}
        transport = RetryTransport(memorystore.policy, safe=f"DELETE {cloud.url}{PLACE}/instances/i")
        with httpx.Client(base_url=cloud.url, transport=transport) as client:
            started = client.post(f"{PLACE}/instances?instanceId=i", json=body)
            while not client.get(f"/v1/{started.json()['name']}").json()["done"]:
                pass
            cloud.fault(Fault.status(503, when="after"))
            refused = client.delete(f"{PLACE}/instances/i")
        assert (refused.status_code, refused.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
        assert cloud.effects.count("redis.projects.locations.instances.delete") == 1
        report = forbear.report(refused)
        assert report is not None
        assert report.maybe_done
