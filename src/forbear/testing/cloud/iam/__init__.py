"""IAM, and the IAM policies of projects: the handler of each operation."""

from collections.abc import Mapping

from forbear.testing.cloud.call import Handler
from forbear.testing.cloud.iam import accounts, keys, policies, roles


def _under(prefix: str, handlers: Mapping[str, Handler]) -> Mapping[str, Handler]:
    return {f"{prefix}.{name}": handler for name, handler in handlers.items()}


HANDLERS: Mapping[str, Handler] = {
    "iam.projects.serviceAccounts.create": accounts.create,
    "iam.projects.serviceAccounts.list": accounts.list_,
    "iam.projects.serviceAccounts.get": accounts.get,
    "iam.projects.serviceAccounts.patch": accounts.patch,
    "iam.projects.serviceAccounts.update": accounts.update,
    "iam.projects.serviceAccounts.delete": accounts.delete,
    "iam.projects.serviceAccounts.undelete": accounts.undelete,
    "iam.projects.serviceAccounts.enable": accounts.enable,
    "iam.projects.serviceAccounts.disable": accounts.disable,
    **_under("iam.projects.serviceAccounts", policies.ACCOUNT),
    "iam.projects.serviceAccounts.keys.create": keys.create,
    "iam.projects.serviceAccounts.keys.list": keys.list_,
    "iam.projects.serviceAccounts.keys.get": keys.get,
    "iam.projects.serviceAccounts.keys.delete": keys.delete,
    "iam.projects.serviceAccounts.keys.enable": keys.enable,
    "iam.projects.serviceAccounts.keys.disable": keys.disable,
    "iam.projects.serviceAccounts.keys.upload": keys.upload,
    "iam.projects.roles.create": roles.create,
    "iam.projects.roles.list": roles.list_,
    "iam.projects.roles.get": roles.get,
    "iam.projects.roles.patch": roles.patch,
    "iam.projects.roles.delete": roles.delete,
    "iam.projects.roles.undelete": roles.undelete,
    **_under("cloudresourcemanager.projects", policies.PROJECT),
}
