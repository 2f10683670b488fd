"""Add a member to a role of a project, while others change the same policy. Library: requests.

`forbear.update` reads, changes and writes again after a conflict. After a lost response it looks for the member before
it writes again, so that the member is added once.
"""

import sys
from typing import Any

import google.auth
import requests
from google.auth.transport.requests import AuthorizedSession

import forbear
from forbear.services import iam

ROLE = "roles/viewer"


def add_viewer(session: requests.Session, project: str, who: str) -> Any:
    """Give a member the role, and return the policy. `project` is the URL of the project in the API."""

    def call(method: str, body: Any) -> Any:
        response = session.post(f"{project}:{method}", json=body, timeout=30)
        response.raise_for_status()
        return response.json()

    def read() -> Any:
        return call("getIamPolicy", {})

    def add(policy: Any) -> Any:
        return policy | {"bindings": [*policy.get("bindings", []), {"role": ROLE, "members": [who]}]}

    def write(policy: Any) -> Any:
        return call("setIamPolicy", {"policy": policy})

    return forbear.update(
        read=read, modify=add, write=write, conflict=iam.is_conflict, mine=iam.has_member(ROLE, who), policy=iam.policy
    )


if __name__ == "__main__":
    credentials, _ = google.auth.default(["https://www.googleapis.com/auth/cloud-platform"])
    url = f"https://cloudresourcemanager.googleapis.com/v1/projects/{sys.argv[1]}"
    print(add_viewer(AuthorizedSession(credentials), url, sys.argv[2]))
