"""The hosts of Cloud Storage, and which of them read a path as the JSON API does."""

import pytest

from forbear.services import cloud_storage, find
from forbear.services.cloud_storage.hosts import HostKind, kind_of, serves
from forbear.services.registry import recommend
from forbear.services.rfc9110 import policy as rfc9110_policy


@pytest.mark.parametrize(
    ("host", "spoken"),
    [
        ("storage.googleapis.com", HostKind.JSON),
        ("storage.googleapis.com:443", HostKind.JSON),
        ("STORAGE.GoogleAPIs.com.", HostKind.JSON),
        ("storage.googleapis.com.:443", HostKind.JSON),
        ("storage.mtls.googleapis.com", HostKind.JSON),
        ("storage.me-central2.rep.googleapis.com", HostKind.JSON),
        ("storage-vialink1.p.googleapis.com", HostKind.JSON),
        ("content-storage.googleapis.com", HostKind.JSON),
        ("bucket.storage.googleapis.com", HostKind.BUCKET),
        ("my.dotted.bucket.storage.googleapis.com", HostKind.BUCKET),
        ("storage.storage.googleapis.com", HostKind.BUCKET),
        ("www.storage.googleapis.com", HostKind.BUCKET),
        ("c.storage.googleapis.com", HostKind.BUCKET),
        ("bucket.storage.me-central2.rep.googleapis.com", HostKind.BUCKET),
        ("bucket.storage-vialink1.p.googleapis.com", HostKind.BUCKET),
        ("storage-upload.googleapis.com", HostKind.XML),
        ("bucket.storage-download.googleapis.com", HostKind.BUCKET),
        ("commondatastorage.googleapis.com", HostKind.XML),
        ("bucket.commondatastorage.googleapis.com", HostKind.BUCKET),
        ("storage.cloud.google.com", HostKind.XML),
        ("www.googleapis.com", HostKind.SHARED),
        ("www.mtls.googleapis.com", HostKind.SHARED),
        ("googleapis.com", None),
        ("iam.googleapis.com", None),
        ("storagetransfer.googleapis.com", None),
        ("xstorage.googleapis.com", None),
        ("storage-.p.googleapis.com", None),
        ("storage.googleapis.com.example.com", None),
        ("storage.googleapis.community", None),
        ("storageXgoogleapis.com", None),
        ("bucket.storage.cloud.google.com", None),
        ("example.com", None),
        ("127.0.0.1:9000", None),
        ("[::1]:9000", None),
        ("", None),
    ],
)
def test_what_a_host_speaks(host: str, spoken: HostKind | None) -> None:
    """A bucket in the host name means that the path is an object, whatever it looks like."""
    assert kind_of(host) is spoken


@pytest.mark.parametrize(
    ("host", "path", "served"),
    [
        ("storage.googleapis.com", "/storage/v1/b", True),
        ("storage.googleapis.com", "/any/thing", True),
        ("bucket.storage.googleapis.com", "/", True),
        ("www.googleapis.com", "/storage/v1/b", True),
        ("www.googleapis.com", "/upload/storage/v1/b/x/o", True),
        ("www.googleapis.com", "/resumable/upload/storage/v1/b/x/o", True),
        ("www.googleapis.com", "/download/storage/v1/b/x/o/y", True),
        ("www.googleapis.com", "/batch/storage/v1", True),
        ("www.googleapis.com", "/drive/v3/files", False),
        ("www.googleapis.com", "/upload/drive/v3/files", False),
        ("www.googleapis.com", "/storage", False),
        ("www.googleapis.com", "/batch", False),
        ("example.com", "/storage/v1/b", False),
    ],
)
def test_which_requests_go_to_cloud_storage(host: str, path: str, served: bool) -> None:
    """A host of many APIs is ours only on our paths; a path alone says nothing of an unknown host."""
    assert serves(host, path) is served
    assert (find(host, path) is not None) is served
    assert recommend(host, path) is (cloud_storage.policy if served else rfc9110_policy)


def test_a_known_host_has_the_recommended_rules() -> None:
    """`find` gives the service of the recommended policy."""
    assert find("storage.googleapis.com", "/") is cloud_storage.policy.service
