"""IAM, and the IAM policies of Resource Manager: the operations, with the paths that reach them and their handlers."""

from functools import partial

from forbear_cloud.call import Routes, resource_routes
from forbear_cloud.iam import accounts, policies

_PROJECT = "/v1/projects/{project}"
_ACCOUNTS = f"{_PROJECT}/serviceAccounts"
_KEYS = f"{_ACCOUNTS}/{{account}}/keys"
_WITH_POLICIES = {
    "v1": ("projects", "organizations"),
    "v2": ("folders",),
    "v3": ("projects", "folders", "organizations", "tagKeys", "tagValues"),
}
"""The collections of Resource Manager whose resources have IAM policies, by the version of the API."""


def _resource_manager() -> Routes:
    """Return the routes to the IAM methods of Resource Manager, which are the same operations in all versions."""
    return tuple(
        route
        for version, collections in _WITH_POLICIES.items()
        for name in collections
        for route in resource_routes(
            f"cloudresourcemanager.{name}", f"/{version}/{name}", "resource", policies.policy_handlers(name)
        )
    )


IAM_ROUTES: Routes = (
    *resource_routes(
        "iam.projects.serviceAccounts",
        _ACCOUNTS,
        "account",
        {
            "create": accounts.create,
            "list": accounts.list_,
            "get": accounts.get,
            "patch": accounts.patch,
            "update": accounts.update,
            "delete": accounts.delete,
            "undelete": accounts.undelete,
            "enable": partial(accounts.set_disabled, disabled=False),
            "disable": partial(accounts.set_disabled, disabled=True),
            **policies.ACCOUNT_POLICY,
        },
    ),
    *resource_routes(
        "iam.projects.serviceAccounts.keys",
        _KEYS,
        "key",
        {
            "create": accounts.create_key,
            "list": accounts.list_keys,
            "get": accounts.get_key,
            "delete": accounts.delete_key,
            "enable": partial(accounts.set_key_disabled, disabled=False),
            "disable": partial(accounts.set_key_disabled, disabled=True),
        },
    ),
    ("iam.projects.serviceAccounts.keys.upload", "POST", f"{_KEYS}:upload", accounts.upload_key),
    *resource_routes(
        "iam.projects.roles",
        f"{_PROJECT}/roles",
        "role",
        {
            "create": policies.create_role,
            "list": policies.list_roles,
            "get": policies.get_role,
            "patch": policies.patch_role,
            "delete": policies.delete_role,
            "undelete": policies.undelete_role,
        },
    ),
    *_resource_manager(),
)
