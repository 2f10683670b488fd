"""Compose, copy, rewrite and move objects."""

import httpx
import pytest

from forbear_cloud import Cloud

OBJECTS = "/storage/v1/b/bkt/o"
MIB = 1_048_576


def test_compose_joins_parts_in_order(cloud: Cloud, http: httpx.Client) -> None:
    """The parts are joined in order; a composite object has a component count and no MD5."""
    cloud.store.put("bkt", "a", b"1")
    cloud.store.put("bkt", "b", b"2")
    body = {"sourceObjects": [{"name": "b"}, {"name": "a"}, {"name": "b"}], "destination": {"contentType": "x/y"}}
    made = http.post(f"{OBJECTS}/ab/compose", json=body).json()
    assert (made["componentCount"], made["contentType"], "md5Hash" in made) == (3, "x/y", False)
    assert http.get(f"{OBJECTS}/ab?alt=media").content == b"212"
    again = http.post(f"{OBJECTS}/ab/compose", json={"sourceObjects": [{"name": "ab"}, {"name": "a"}]}).json()
    assert again["componentCount"] == 4
    assert cloud.effects.count("storage.objects.compose", "bkt/ab") == 2


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", {}, 400),
        ("", {"sourceObjects": []}, 400),
        ("", {"sourceObjects": "a"}, 400),
        ("", {"sourceObjects": ["a"]}, 400),
        ("", {"sourceObjects": [{}]}, 400),
        ("", {"sourceObjects": [{"name": "a", "generation": "x"}]}, 400),
        ("", {"sourceObjects": [{"name": "a"}] * 33}, 400),
        ("", {"sourceObjects": [{"name": "nope"}]}, 404),
        ("", {"sourceObjects": [{"name": "a", "generation": "7"}]}, 404),
        ("", {"sourceObjects": [{"name": "a", "objectPreconditions": {"ifGenerationMatch": "7"}}]}, 412),
        ("?ifGenerationMatch=7", {"sourceObjects": [{"name": "a"}]}, 412),
        ("?destinationPredefinedAcl=open", {"sourceObjects": [{"name": "a"}]}, 400),
    ],
)
def test_compose_refuses(cloud: Cloud, http: httpx.Client, query: str, body: object, status: int) -> None:
    """Sources must exist and be at most 32, and the conditions of both sides apply."""
    cloud.store.put("bkt", "a", b"1")
    assert http.post(f"{OBJECTS}/ab/compose{query}", json=body).status_code == status
    assert len(cloud.effects) == 0


@pytest.mark.parametrize("verb", ["copyTo", "rewriteTo"])
def test_a_copy_has_the_bytes_of_its_source(cloud: Cloud, http: httpx.Client, verb: str) -> None:
    """A copy has the source's bytes, and its metadata or that of the request; the conditions of both sides apply."""
    cloud.store.create_bucket("other")
    source = cloud.store.put("bkt", "a", b"1", {"metadata": {"k": "v"}, "contentType": "x/y"})
    url = f"{OBJECTS}/a/{verb}/b/other/o/c%2Fd"
    assert http.post(url).status_code == 200
    assert cloud.store.object("other", "c/d").fields["metadata"] == {"k": "v"}
    assert http.post(url, json={"contentType": "z/z"}).status_code == 200
    assert cloud.store.object("other", "c/d").fields == {"contentType": "z/z"}
    assert http.post(f"{url}?ifGenerationMatch=0").status_code == 412
    assert http.post(f"{url}?ifSourceGenerationMatch=7").status_code == 412
    assert http.post(f"{url}?ifSourceMetagenerationNotMatch=1").status_code == 412
    assert http.post(f"{url}?sourceGeneration={source.generation}").status_code == 200
    assert http.post(f"{url}?sourceGeneration=7").status_code == 404
    assert http.post(f"{OBJECTS}/a/{verb}/b/nope/o/c").status_code == 404
    assert cloud.effects.count(resource="other/c/d") == 3


def test_rewrite_in_several_calls(cloud: Cloud, http: httpx.Client) -> None:
    """Only the last call has an effect, and a call whose response was lost can be repeated with its token."""
    cloud.store.put("bkt", "a", bytes(3 * MIB - 1))
    url = f"{OBJECTS}/a/rewriteTo/b/bkt/o/c?maxBytesRewrittenPerCall={MIB}"
    first = http.post(url).json()
    assert (first["done"], first["totalBytesRewritten"]) == (False, str(MIB))
    lost, second = (http.post(f"{url}&rewriteToken={first['rewriteToken']}").json() for _ in range(2))
    assert lost["totalBytesRewritten"] == second["totalBytesRewritten"] == str(2 * MIB)
    assert len(cloud.effects) == 0
    last = http.post(f"{url}&rewriteToken={second['rewriteToken']}").json()
    assert (last["done"], last["resource"]["size"]) == (True, str(3 * MIB - 1))
    assert cloud.effects.count("storage.objects.rewrite") == 1


def test_rewrite_refuses(cloud: Cloud, http: httpx.Client) -> None:
    """A token belongs to one rewrite of one generation, and the size per call is a multiple of 1 MiB."""
    cloud.store.put("bkt", "a", bytes(2 * MIB))
    url = f"{OBJECTS}/a/rewriteTo/b/bkt/o/c?maxBytesRewrittenPerCall="
    assert http.post(f"{url}5").status_code == 400
    assert http.post(f"{url}0").status_code == 400
    assert http.post(f"{url}{MIB}&rewriteToken=nope").status_code == 400
    token = http.post(f"{url}{MIB}").json()["rewriteToken"]
    assert http.post(f"{OBJECTS}/a/rewriteTo/b/bkt/o/d?rewriteToken={token}").status_code == 400
    cloud.store.put("bkt", "a", bytes(2 * MIB))
    assert http.post(f"{url}{MIB}&rewriteToken={token}").status_code == 400
    assert len(cloud.effects) == 0


def test_a_move_is_one_effect(cloud: Cloud, http: httpx.Client) -> None:
    """A move is one effect that creates the destination and deletes the source; a repeated move finds no source."""
    cloud.store.put("bkt", "a", b"1", {"metadata": {"k": "v"}})
    url = f"{OBJECTS}/a/moveTo/o/b%2Fc"
    assert http.post(f"{url}?ifSourceGenerationMatch=7").status_code == 412
    assert http.post(f"{url}?ifGenerationMatch=7").status_code == 412
    assert http.post(f"{OBJECTS}/a/moveTo/o/a").status_code == 400
    assert http.post(url).json()["metadata"] == {"k": "v"}
    assert http.post(url).status_code == 404
    assert list(cloud.store.bucket("bkt").objects) == ["b/c"]
    assert len(cloud.effects) == 1
