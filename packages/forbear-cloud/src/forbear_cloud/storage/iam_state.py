"""The state of IAM: service accounts with their keys, custom roles, and policies of projects, folders and so on."""

from collections.abc import Callable
from dataclasses import dataclass, field

from forbear_cloud.http.messages import ApiError, JsonObject, already_exists
from forbear_cloud.storage.model import IamPolicy, Revised


@dataclass(slots=True)
class AccountKey:
    """A key of a service account; `fields` has what a listing shows of it besides its name.

    `account` is the resource name of the service account.
    """

    account: str
    id: str
    fields: JsonObject
    disabled: bool = False

    @property
    def name(self) -> str:
        """The resource name: the account's, then "/keys/" and the id of the key."""
        return f"{self.account}/keys/{self.id}"


@dataclass(slots=True)
class ServiceAccount:
    """A service account.

    A deleted one can be restored by its `unique_id`, unless another account has taken its email.
    """

    project: str
    email: str
    unique_id: str
    display_name: str = ""
    description: str = ""
    disabled: bool = False
    deleted: bool = False
    keys: dict[str, AccountKey] = field(default_factory=dict[str, AccountKey])
    policy: IamPolicy = field(default_factory=IamPolicy)

    @property
    def name(self) -> str:
        """The resource name: projects/PROJECT/serviceAccounts/EMAIL."""
        return f"projects/{self.project}/serviceAccounts/{self.email}"


@dataclass(slots=True)
class Role(Revised):
    """A custom role of a project; a deleted one keeps its id and can be restored."""

    project: str
    id: str
    fields: JsonObject
    deleted: bool = False

    @property
    def name(self) -> str:
        """The resource name: projects/PROJECT/roles/ID."""
        return f"projects/{self.project}/roles/{self.id}"


class IamState:
    """All accounts, roles and policies; every project, folder, organization and tag exists."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.accounts: dict[str, ServiceAccount] = {}
        """Service accounts by unique id."""
        self.roles: dict[tuple[str, str], Role] = {}
        """Custom roles by project and id."""
        self.policies: dict[str, IamPolicy] = {}
        """Policies by the name of their resource, such as "projects/p" or "folders/1"."""
        self.unseen: dict[str, int] = {}
        """The number of further reads of a new resource that fail with 404, by its name."""
        self._next_id = next_id

    def clear(self) -> None:
        """Delete all accounts with their keys, all roles and all policies."""
        for table in (self.accounts, self.roles, self.policies, self.unseen):
            table.clear()

    def create_account(self, project: str, account_id: str) -> ServiceAccount:
        """Create and return a service account with the email ACCOUNT_ID@PROJECT.iam.gserviceaccount.com.

        Raise 409 if an account that is not deleted has this email. For the project "example.com:p", PROJECT is
        p.example.com.
        """
        domain, _, short = project.rpartition(":")
        email = f"{account_id}@{short}.{domain + '.' if domain else ''}iam.gserviceaccount.com"
        if self.find_by_email(email) is not None:
            raise already_exists(f"Service account {account_id} already exists within project projects/{project}.")
        account = ServiceAccount(project, email, str(10**20 + self._next_id()))
        self.accounts[account.unique_id] = account
        return account

    def account(self, project: str, name: str) -> ServiceAccount:
        """Return the service account whose email or unique id is `name`; raise 404 if it does not exist or is deleted.

        It must belong to `project`, unless that is "-", which stands for any project.
        """
        account = self.find_by_email(name) or self.accounts.get(name)
        if account is None or account.deleted or project not in {"-", account.project}:
            raise ApiError(404, "Unknown service account")
        return account

    def find_by_email(self, email: str) -> ServiceAccount | None:
        """Return the service account that has this email and is not deleted, or None."""
        return next((each for each in self.accounts.values() if each.email == email and not each.deleted), None)

    def role(self, project: str, name: str) -> Role:
        """Return the custom role of a project with the id `name`, deleted or not; raise 404 if it does not exist."""
        role = self.roles.get((project, name))
        if role is None:
            raise ApiError(404, f"The role named projects/{project}/roles/{name} was not found.")
        return role

    def policy(self, name: str) -> IamPolicy:
        """Return the IAM policy of the resource `name`, such as "projects/p"; it has no bindings at first."""
        return self.policies.setdefault(name, IamPolicy())

    def check_seen(self, name: str) -> None:
        """Count one read of the resource `name`; raise 404 for the first reads of a new one that a fault hides."""
        left = self.unseen.get(name, 0)
        if left:
            self.unseen[name] = left - 1
            raise ApiError(404, f"{name} was not found.")
