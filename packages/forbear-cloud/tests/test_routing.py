"""The cloud's routes agree with the discovery documents of the services."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from forbear_cloud.api import STORAGE_ROUTES
from forbear_cloud.iam import IAM_ROUTES
from forbear_cloud.memorystore import MEMORYSTORE_ROUTES

STEPS = {("storage.objects.insert", "PUT"), ("storage.objects.insert", "DELETE")}
"""The steps of an upload session, which the documents do not have."""

ROUTES = [route[:3] for route in (*STORAGE_ROUTES, *IAM_ROUTES, *MEMORYSTORE_ROUTES) if route[:2] not in STEPS]


def methods(resource: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the methods of a discovery document: id, HTTP method and path, and once more for uploads."""
    for method in resource.get("methods", {}).values():
        path = method.get("flatPath") or method["path"]
        yield method["id"], method["httpMethod"], path
        for upload in method.get("mediaUpload", {}).get("protocols", {}).values():
            yield method["id"], method["httpMethod"], upload["path"]
        if method.get("supportsMediaDownload"):
            yield method["id"], method["httpMethod"], f"/download/storage/v1/{path}"
    for nested in resource.get("resources", {}).values():
        yield from methods(nested)


def shape(path: str) -> str:
    """Return a path without the names of its variables."""
    return re.sub(r"\{[^}]*\}", "{}", path).strip("/")


@pytest.fixture(scope="module")
def known() -> set[tuple[str, str, str]]:
    """Return the methods that the services publish."""
    documents = files("googleapiclient.discovery_cache.documents")
    published: set[tuple[str, str, str]] = set()
    manager = (f"cloudresourcemanager.{version}" for version in ("v1", "v2", "v3"))
    for name in ("storage.v1", "iam.v1", *manager, "redis.v1"):
        document = json.loads(documents.joinpath(f"{name}.json").read_text(encoding="utf-8"))
        base = document["servicePath"]
        for method, verb, path in methods(document):
            published.add((method, verb, shape(path if path.startswith("/") else base + path)))
    return published


@pytest.mark.parametrize(("operation", "verb", "path"), ROUTES, ids=str)
def test_the_service_publishes_every_route(
    known: set[tuple[str, str, str]], operation: str, verb: str, path: str
) -> None:
    """Every route has an id, a method and a path that the service publishes."""
    assert (operation, verb, shape(path)) in known
