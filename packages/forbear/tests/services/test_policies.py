"""The names of policies: what each kind of name means, and which names there are."""

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.presets import PRESETS
from forbear.services import cloud_storage, iam
from forbear.services.policies import AmbiguousName, find_policy, policy_names


def test_each_kind_of_name() -> None:
    """A name is "default", a preset, a service, a profile of a service, or a profile that one service has."""
    default = find_policy("default")
    assert default is not None
    assert (default.limits, default.backoff) == (Limits(), Exponential())
    mobile = find_policy("mobile")
    assert mobile is not None
    assert mobile.limits == PRESETS["mobile"].limits
    assert find_policy("iam") == iam.policy
    assert find_policy("cloud_storage.gsutil") == find_policy("gsutil") == cloud_storage.gsutil
    assert [find_policy(name) for name in ("perl", "iam.perl", "perl.iam", "")] == [None] * 4


def test_a_service_completes_a_name() -> None:
    """A profile is that of the service; "default" and presets bring limits and waits to its recommended policy."""
    assert find_policy("documented", "iam") == iam.documented
    assert find_policy("gsutil", "iam") is None
    assert find_policy("default", "perl") is None
    changed = find_policy("batch", "iam")
    assert changed is not None
    assert (changed.limits, changed.service) == (PRESETS["batch"].limits, iam.policy.service)


def test_a_name_of_several_services() -> None:
    """The error lists the full names."""
    with pytest.raises(AmbiguousName, match="several services have the profile documented; name one of") as error:
        find_policy("documented")
    assert "iam.documented" in error.value.choices


def test_all_names_can_be_found() -> None:
    """Every listed name has a policy."""
    names = policy_names()
    assert {"default", "iam", "cloud_storage.gsutil", *PRESETS} <= set(names)
    assert all(find_policy(name) is not None for name in names)
