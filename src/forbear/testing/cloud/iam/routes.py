"""The operations of IAM that are served, and those of Resource Manager on project policies; data only."""

_IAM_PROJECT = "/v1/projects/{project}"
_ACCOUNTS = f"{_IAM_PROJECT}/serviceAccounts"
_ACCOUNT = f"{_ACCOUNTS}/{{account}}"
_ACCOUNT_KEYS = f"{_ACCOUNT}/keys"
_ACCOUNT_KEY = f"{_ACCOUNT_KEYS}/{{key}}"
_ROLES = f"{_IAM_PROJECT}/roles"
_ROLE = f"{_ROLES}/{{role}}"

_POLICY_VERBS = ("getIamPolicy", "setIamPolicy", "testIamPermissions")

IAM_ROUTES: tuple[tuple[str, str, str], ...] = (
    ("iam.projects.serviceAccounts.create", "POST", _ACCOUNTS),
    ("iam.projects.serviceAccounts.list", "GET", _ACCOUNTS),
    ("iam.projects.serviceAccounts.get", "GET", _ACCOUNT),
    ("iam.projects.serviceAccounts.patch", "PATCH", _ACCOUNT),
    ("iam.projects.serviceAccounts.update", "PUT", _ACCOUNT),
    ("iam.projects.serviceAccounts.delete", "DELETE", _ACCOUNT),
    *((f"iam.projects.serviceAccounts.{verb}", "POST", f"{_ACCOUNT}:{verb}")
      for verb in ("undelete", "enable", "disable", *_POLICY_VERBS)),
    ("iam.projects.serviceAccounts.keys.create", "POST", _ACCOUNT_KEYS),
    ("iam.projects.serviceAccounts.keys.list", "GET", _ACCOUNT_KEYS),
    ("iam.projects.serviceAccounts.keys.get", "GET", _ACCOUNT_KEY),
    ("iam.projects.serviceAccounts.keys.delete", "DELETE", _ACCOUNT_KEY),
    ("iam.projects.serviceAccounts.keys.enable", "POST", f"{_ACCOUNT_KEY}:enable"),
    ("iam.projects.serviceAccounts.keys.disable", "POST", f"{_ACCOUNT_KEY}:disable"),
    ("iam.projects.serviceAccounts.keys.upload", "POST", f"{_ACCOUNT_KEYS}:upload"),
    ("iam.projects.roles.create", "POST", _ROLES),
    ("iam.projects.roles.list", "GET", _ROLES),
    ("iam.projects.roles.get", "GET", _ROLE),
    ("iam.projects.roles.patch", "PATCH", _ROLE),
    ("iam.projects.roles.delete", "DELETE", _ROLE),
    ("iam.projects.roles.undelete", "POST", f"{_ROLE}:undelete"),
    *((f"cloudresourcemanager.projects.{verb}", "POST", f"/{version}/projects/{{project}}:{verb}")
      for version in ("v1", "v3") for verb in _POLICY_VERBS),
)  # fmt: skip
