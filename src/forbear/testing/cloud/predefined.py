"""The predefined access control lists (`predefinedAcl=publicRead` and so on) as data; knows no resource."""

from collections.abc import Mapping

from forbear.testing.cloud.errors import invalid

_PUBLIC: Mapping[str, Mapping[str, str]] = {
    "private": {},
    "publicRead": {"allUsers": "READER"},
    "publicReadWrite": {"allUsers": "WRITER"},
    "authenticatedRead": {"allAuthenticatedUsers": "READER"},
    "bucketOwnerRead": {"project-owners-{project}": "READER"},
    "bucketOwnerFullControl": {"project-owners-{project}": "OWNER"},
    "projectPrivate": {"project-editors-{project}": "OWNER", "project-viewers-{project}": "READER"},
}


def predefined_acl(query: Mapping[str, str], name: str, project: str) -> dict[str, str] | None:
    """The list that the query parameter `name` asks for, None when it is absent, 400 when it is not one."""
    word = query.get(name)
    if word is None:
        return None
    if word not in _PUBLIC:
        raise invalid(f"Invalid value for {name}: '{word}'. It must be one of {', '.join(_PUBLIC)}.")
    grants = {f"project-owners-{project}": "OWNER"}
    for entity, role in _PUBLIC[word].items():
        grants.setdefault(entity.format(project=project), role)
    return grants
