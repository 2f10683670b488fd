"""IAM, and the IAM policies of projects: the handler of each operation."""

from collections.abc import Mapping
from functools import partial

from forbear.testing.cloud.call import Handler, prefixed
from forbear.testing.cloud.iam import accounts, policies, roles

HANDLERS: Mapping[str, Handler] = {
    "iam.projects.serviceAccounts.create": accounts.create,
    "iam.projects.serviceAccounts.list": accounts.list_,
    "iam.projects.serviceAccounts.get": accounts.get,
    "iam.projects.serviceAccounts.patch": accounts.patch,
    "iam.projects.serviceAccounts.update": accounts.update,
    "iam.projects.serviceAccounts.delete": accounts.delete,
    "iam.projects.serviceAccounts.undelete": accounts.undelete,
    "iam.projects.serviceAccounts.enable": partial(accounts.set_disabled, disabled=False),
    "iam.projects.serviceAccounts.disable": partial(accounts.set_disabled, disabled=True),
    **prefixed("iam.projects.serviceAccounts", policies.ACCOUNT),
    "iam.projects.serviceAccounts.keys.create": accounts.create_key,
    "iam.projects.serviceAccounts.keys.list": accounts.list_keys,
    "iam.projects.serviceAccounts.keys.get": accounts.get_key,
    "iam.projects.serviceAccounts.keys.delete": accounts.delete_key,
    "iam.projects.serviceAccounts.keys.enable": partial(accounts.set_key_disabled, disabled=False),
    "iam.projects.serviceAccounts.keys.disable": partial(accounts.set_key_disabled, disabled=True),
    "iam.projects.serviceAccounts.keys.upload": accounts.upload_key,
    "iam.projects.roles.create": roles.create,
    "iam.projects.roles.list": roles.list_,
    "iam.projects.roles.get": roles.get,
    "iam.projects.roles.patch": roles.patch,
    "iam.projects.roles.delete": roles.delete,
    "iam.projects.roles.undelete": roles.undelete,
    **prefixed("cloudresourcemanager.projects", policies.PROJECT),
}
