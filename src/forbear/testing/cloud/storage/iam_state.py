"""What IAM keeps: service accounts, keys, custom roles and project policies as plain data, and how they are found."""

from collections.abc import Callable
from dataclasses import dataclass, field

from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import JsonObject
from forbear.testing.cloud.storage.model import Policy, etag_of


@dataclass(slots=True)
class Key:
    """A key of a service account; `fields` is what a listing shows of it."""

    id: str
    fields: JsonObject
    disabled: bool = False


@dataclass(slots=True)
class ServiceAccount:
    """A service account; a deleted one can be restored by its `unique_id`, and others may have its email by then."""

    project: str
    email: str
    unique_id: str
    display_name: str = ""
    description: str = ""
    disabled: bool = False
    deleted: bool = False
    keys: dict[str, Key] = field(default_factory=dict[str, Key])
    policy: Policy = field(default_factory=Policy)

    @property
    def name(self) -> str:
        """Its resource name."""
        return f"projects/{self.project}/serviceAccounts/{self.email}"


@dataclass(slots=True)
class Role:
    """A custom role of a project; a deleted one keeps its name until it is restored."""

    project: str
    id: str
    fields: JsonObject
    deleted: bool = False
    revision: int = 1

    @property
    def name(self) -> str:
        """Its resource name."""
        return f"projects/{self.project}/roles/{self.id}"

    @property
    def etag(self) -> str:
        """Changes with every write."""
        return etag_of(self.revision)


class Iam:
    """All accounts, roles and policies; a project is there as soon as it is named."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.accounts: dict[str, ServiceAccount] = {}
        """By unique id."""
        self.roles: dict[tuple[str, str], Role] = {}
        """By project and id."""
        self.policies: dict[str, Policy] = {}
        """By project."""
        self.unseen: dict[str, int] = {}
        """How many reads of a resource, by its name, will not find it yet."""
        self._next_id = next_id

    def clear(self) -> None:
        """Forget everything."""
        for table in (self.accounts, self.roles, self.policies, self.unseen):
            table.clear()

    def create_account(self, project: str, account_id: str) -> ServiceAccount:
        """Make a service account; 409 when the project has one of that id."""
        domain, _, short = project.rpartition(":")
        email = f"{account_id}@{short}.{domain + '.' if domain else ''}iam.gserviceaccount.com"
        if self.by_email(email) is not None:
            text = f"Service account {account_id} already exists within project projects/{project}."
            raise ApiError(409, text, "ALREADY_EXISTS")
        account = ServiceAccount(project, email, str(10**20 + self._next_id()))
        self.accounts[account.unique_id] = account
        return account

    def account(self, project: str, name: str) -> ServiceAccount:
        """The service account of an email or a unique id, "-" for whatever project; 404 when there is none."""
        account = self.by_email(name) or self.accounts.get(name)
        if account is None or account.deleted or project not in {"-", account.project}:
            raise ApiError(404, "Unknown service account")
        return account

    def by_email(self, email: str) -> ServiceAccount | None:
        """The service account that has an email now."""
        return next((each for each in self.accounts.values() if each.email == email and not each.deleted), None)

    def role(self, project: str, name: str) -> Role:
        """A custom role, deleted or not; 404 when there is none."""
        role = self.roles.get((project, name))
        if role is None:
            raise ApiError(404, f"The role named projects/{project}/roles/{name} was not found.")
        return role

    def policy(self, project: str) -> Policy:
        """The policy of a project."""
        return self.policies.setdefault(project, Policy())

    def check_seen(self, name: str) -> None:
        """404 while a resource that has been made is not visible yet; every read brings it closer."""
        left = self.unseen.get(name, 0)
        if left:
            self.unseen[name] = left - 1
            raise ApiError(404, f"{name} was not found.")
