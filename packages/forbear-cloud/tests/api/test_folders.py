"""Folders, managed folders, trailing delimiters and the layout of a bucket."""

from urllib.parse import quote

import httpx
import pytest

from forbear_cloud import Cloud

FOLDERS = "/storage/v1/b/tree/folders"
MANAGED = "/storage/v1/b/bkt/managedFolders"


@pytest.fixture
def tree(cloud: Cloud) -> Cloud:
    """Return a cloud with a bucket that has a hierarchical namespace."""
    cloud.store.create_bucket("tree", fields={"hierarchicalNamespace": {"enabled": True}})
    return cloud


def folder(name: str) -> str:
    """Return the path of a folder."""
    return f"{FOLDERS}/{quote(name, safe='')}"


def names(response: httpx.Response) -> list[str]:
    """Return the names in a listing."""
    assert response.status_code == 200
    return [item["name"] for item in response.json().get("items", [])]


def test_life_of_folders(tree: Cloud, http: httpx.Client) -> None:
    """Folders can be created once, listed by level, and deleted when they are empty."""
    assert http.post(FOLDERS, json={"name": "a/b/"}).status_code == 404
    assert http.post(f"{FOLDERS}?recursive=true", json={"name": "a/b"}).json()["name"] == "a/b/"
    assert http.post(FOLDERS, json={"name": "a/b/"}).status_code == 409
    assert http.post(FOLDERS, json={"name": "c/"}).json()["kind"] == "storage#folder"
    assert names(http.get(FOLDERS)) == ["a/", "a/b/", "c/"]
    assert names(http.get(f"{FOLDERS}?delimiter=/")) == ["a/", "c/"]
    assert names(http.get(f"{FOLDERS}?delimiter=/&prefix=a/")) == ["a/b/"]
    page = http.get(f"{FOLDERS}?pageSize=2").json()
    assert names(http.get(f"{FOLDERS}?pageSize=2&pageToken={page['nextPageToken']}")) == ["c/"]
    assert http.get(folder("a/b/")).json()["metageneration"] == "1"
    assert http.delete(folder("a/")).status_code == 409
    assert http.delete(folder("a/b/") + "?ifMetagenerationMatch=2").status_code == 412
    assert http.delete(folder("a/b/") + "?ifMetagenerationMatch=1").status_code == 204
    assert http.delete(folder("a/b/")).status_code == 404
    assert [each.operation for each in tree.effects] == ["storage.folders.insert"] * 2 + ["storage.folders.delete"]


def test_objects_make_folders(tree: Cloud, http: httpx.Client) -> None:
    """Writing an object creates its folders, which are listed as prefixes on request."""
    http.put("/tree/x/y/o", content=b"x")
    http.post(FOLDERS, json={"name": "empty/"})
    assert names(http.get(FOLDERS)) == ["empty/", "x/", "x/y/"]
    plain = http.get("/storage/v1/b/tree/o?delimiter=/").json()
    assert plain["prefixes"] == ["x/"]
    query = "delimiter=/&includeFoldersAsPrefixes=true"
    assert http.get(f"/storage/v1/b/tree/o?{query}").json()["prefixes"] == ["empty/", "x/"]
    first = http.get(f"/storage/v1/b/tree/o?{query}&maxResults=1").json()
    assert first["prefixes"] == ["empty/"]
    rest = http.get(f"/storage/v1/b/tree/o?{query}&maxResults=1&pageToken={first['nextPageToken']}").json()
    assert (rest["prefixes"], "nextPageToken" in rest) == (["x/"], False)
    assert http.delete(folder("x/")).status_code == 409


def test_a_rename_moves_a_folder_in_one_effect(tree: Cloud, http: httpx.Client) -> None:
    """A rename moves a folder with everything in it, in one effect, and its operation can be read."""
    http.put("/tree/a/b/o", content=b"x")
    http.post(FOLDERS, json={"name": "taken/"})
    generation = tree.store.object("tree", "a/b/o").generation
    before = tree.effects.count()
    rename = folder("a/") + "/renameTo/folders/"
    assert http.post(rename + "taken%2F").status_code == 409
    assert http.post(rename + "a%2Fb%2Fc%2F").status_code == 400
    assert http.post(rename + "n%2F?ifSourceMetagenerationMatch=5").status_code == 412
    operation = http.post(rename + "n%2Fm%2F?ifSourceMetagenerationMatch=1").json()
    assert (operation["done"], operation["response"]["name"]) == (True, "n/m/")
    assert http.get(operation["selfLink"]).json() == operation
    assert http.get("/storage/v1/b/tree/operations").json()["operations"] == [operation]
    assert http.get("/storage/v1/b/tree/operations/nope").status_code == 404
    assert tree.store.object("tree", "n/m/b/o").generation == generation
    assert names(http.get(FOLDERS)) == ["n/", "n/m/", "n/m/b/", "taken/"]
    assert http.post(rename + "x%2F").status_code == 404
    assert tree.effects.count() == before + 1


def test_delete_recursive(tree: Cloud, http: httpx.Client) -> None:
    """A recursive deletion removes everything in a folder, or nothing if an object in it is protected."""
    for name in ("a/1", "a/b/2", "c/3"):
        http.put(f"/tree/{name}", content=b"x")
    tree.store.object("tree", "a/b/2").fields["temporaryHold"] = True
    assert http.post(folder("a/") + "/deleteRecursive").status_code == 403
    tree.store.object("tree", "a/b/2").fields["temporaryHold"] = False
    assert http.post(folder("a/") + "/deleteRecursive?ifMetagenerationMatch=9").status_code == 412
    assert http.post(folder("a/") + "/deleteRecursive").json()["done"] is True
    assert [item.name for item in tree.store.bucket("tree").versions()] == ["c/3"]
    assert names(http.get(FOLDERS)) == ["c/"]
    assert tree.effects.count("storage.folders.deleteRecursive") == 1


def test_no_folders_without_a_tree(http: httpx.Client) -> None:
    """A bucket with a flat namespace has no folders."""
    assert http.get("/storage/v1/b/bkt/folders").status_code == 409
    assert http.post("/storage/v1/b/bkt/folders", json={"name": "a/"}).status_code == 409


def test_managed_folders(cloud: Cloud, http: httpx.Client) -> None:
    """Every bucket can have managed folders, which have their own policies."""
    assert http.post(MANAGED, json={"name": "a/"}).json()["kind"] == "storage#managedFolder"
    assert http.post(MANAGED, json={"name": "a/"}).status_code == 409
    assert names(http.get(f"{MANAGED}?prefix=a")) == ["a/"]
    policy = http.get(f"{MANAGED}/a%2F/iam").json()
    bindings = [{"role": "roles/viewer", "members": ["user:a@example.com"]}]
    assert http.put(f"{MANAGED}/a%2F/iam", json={"bindings": bindings, "etag": policy["etag"]}).status_code == 200
    assert http.put(f"{MANAGED}/a%2F/iam", json={"bindings": [], "etag": policy["etag"]}).status_code == 412
    assert http.get(f"{MANAGED}/a%2F/iam/testPermissions?permissions=x").json()["permissions"] == ["x"]
    assert http.patch(f"{MANAGED}/a%2F?ifMetagenerationMatch=1", json={}).json()["metageneration"] == "2"
    http.put("/bkt/a/o", content=b"x")
    assert http.delete(f"{MANAGED}/a%2F").status_code == 409
    assert http.delete(f"{MANAGED}/a%2F?allowNonEmpty=true&ifMetagenerationMatch=1").status_code == 412
    assert http.delete(f"{MANAGED}/a%2F?allowNonEmpty=true").status_code == 204
    assert http.get(f"{MANAGED}/a%2F").status_code == 404
    assert cloud.store.object("bkt", "a/o").data == b"x"
    assert cloud.effects.count("storage.managedFolders.delete") == 1


def test_trailing_delimiters(cloud: Cloud, http: httpx.Client) -> None:
    """With includeTrailingDelimiter, an object named like a prefix is listed beside it, with any page size."""
    for name in ("a/", "a/1", "a//", "b", "c/"):
        cloud.store.put("bkt", name, b"")
    listing = "/storage/v1/b/bkt/o?delimiter=/"
    plain = http.get(listing).json()
    assert ([item["name"] for item in plain["items"]], plain["prefixes"]) == (["b"], ["a/", "c/"])
    for size in (1, 2, 100):
        items, prefixes, token = list[str](), list[str](), ""
        while True:
            url = f"{listing}&includeTrailingDelimiter=true&maxResults={size}"
            page = http.get(f"{url}&pageToken={token}" if token else url).json()
            items += [item["name"] for item in page.get("items", [])]
            prefixes += page.get("prefixes", [])
            token = page.get("nextPageToken", "")
            if not token:
                break
        assert (items, prefixes) == (["a/", "b", "c/"], ["a/", "c/"])


def test_storage_layout(tree: Cloud, http: httpx.Client) -> None:
    """The layout says whether a bucket has folders."""
    layouts = [http.get(f"/storage/v1/b/{name}/storageLayout").json() for name in ("tree", "bkt")]
    assert [each["hierarchicalNamespace"] for each in layouts] == [{"enabled": True}, {"enabled": False}]
    assert (layouts[0]["kind"], layouts[0]["locationType"]) == ("storage#storageLayout", "multi-region")
    assert http.get("/storage/v1/b/nope/storageLayout").status_code == 404
    http.put("/storage/v1/b/tree", json={"location": "EU"})
    assert tree.store.bucket("tree").hierarchical
