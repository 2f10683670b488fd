"""The profiles of Cloud Storage, each held field by field against the figures of its document."""

import pickle
import subprocess
import sys

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT
from forbear.policy import Policy
from forbear.services import cloud_storage
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage
from forbear.services.errors import ErrorVerdicts

ALMOST_1 = 1 - 2**-53
EVERY_5XX = set(range(500, 600))
ALL = (
    cloud_storage.policy, cloud_storage.documented, cloud_storage.documented_2020, cloud_storage.python_client,
    cloud_storage.gsutil,
)  # fmt: skip


def service_of(policy: Policy) -> CloudStorage:
    """The service of a policy."""
    assert isinstance(policy.service, CloudStorage)
    return policy.service


def ranges(policy: Policy, count: int = 9) -> list[tuple[float, float]]:
    """The least and the longest wait before each of the first retries."""
    return [(policy.backoff.delay(n, 0.0, None), policy.backoff.delay(n, ALMOST_1, None)) for n in range(count)]


@pytest.mark.parametrize("policy", ALL)
def test_what_they_share(policy: Policy) -> None:
    """Errors are judged by their shape, and nothing is repeated whose operation nobody knows."""
    assert policy.on == ErrorVerdicts(service_of(policy))
    assert policy.repeatable is None
    assert not policy.repeats_calls
    assert policy.attempt_timeout is None
    assert policy.budget is None
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_documented_is_the_retry_page() -> None:
    """The retry page of Cloud Storage, 2021 Portuguese edition, which is today's in all figures.

    "min(((2n)+random_number_milliseconds), maximum_backoff)", "menor ou igual a 1.000", "32 ou 64 segundos", "um
    deadline de 600 segundos", "HTTP 5xx", "408", "429, exceto ... uploads retomáveis".
    """
    policy = cloud_storage.documented
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=64, jitter="documented", spread=1)
    assert policy.limits == Limits(attempts=None, timeout=600)
    assert policy.service == DOCUMENTED
    assert service_of(policy).statuses == {408, 429} | EVERY_5XX
    expected = [(1, 2), (2, 3), (4, 5), (8, 9), (16, 17), (32, 33), (64, 64), (64, 64), (64, 64)]
    assert ranges(policy) == [pytest.approx(wait) for wait in expected]


def test_documented_2020_is_the_page_before_it() -> None:
    """The page on truncated exponential backoff, in its older Portuguese and German editions.

    "min(((2^n)+random_number_milliseconds), maximum_backoff)", "32 oder 64 Sekunden", "um número máximo de novas
    tentativas" without a figure, "5xx und 429" and nothing else.
    """
    policy = cloud_storage.documented_2020
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=64, jitter="documented", spread=1)
    assert policy.limits == Limits(attempts=11, timeout=None)
    assert service_of(policy) == CloudStorage(documented=True, statuses=frozenset({429} | EVERY_5XX))
    assert "no figure" in (documents()["documented_2020"] or "")
    assert ErrorVerdicts(service_of(policy))(ConnectionResetError()) == TRANSIENT
    assert "lists no transport errors" in (documents()["documented_2020"] or "")


def test_python_client_is_the_table_of_the_page() -> None:
    """The retry page of Cloud Storage, 2021 Portuguese edition, section on Python.

    "Tempo de espera inicial 1", "Multiplicador ... 2", "Tempo máximo de espera 60", "Prazo padrão 120"; "429 ... 500
    ... 502 ... 503 ... 504 ... 508".
    """
    policy = cloud_storage.python_client
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=60, jitter="full")
    assert policy.limits == Limits(attempts=None, timeout=120)
    assert service_of(policy).statuses == {429, 500, 502, 503, 504, 508}
    assert service_of(policy).documented


def test_gsutil_is_the_section_of_the_page() -> None:
    """The retry page of Cloud Storage, 2021 Portuguese edition, section on gsutil.

    "um período aleatório entre [0..1] segundos", then "[0..2]" and "[0..4]", "até 23 novas tentativas", "um máximo
    padrão de 60 segundos", for "os erros listados na seção Visão geral".
    """
    policy = cloud_storage.gsutil
    expected = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32), (0, 60), (0, 60)]
    assert ranges(policy, 8) == [pytest.approx(wait) for wait in expected]
    assert policy.limits == Limits(attempts=24, timeout=None)
    assert policy.service == DOCUMENTED
    assert sum(policy.backoff.delay(n, 0.5, None) for n in range(23)) == 541.5  # "cerca de 10 minutos"


def test_policy_waits_with_jitter_that_grows() -> None:
    """Retry n waits 2**n to 2**(n+1), never less than documented below the cap, and 32 to 64 s at it."""
    policy = cloud_storage.policy
    expected = [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (32, 64), (32, 64), (32, 64)]
    assert ranges(policy) == [pytest.approx(wait) for wait in expected]
    assert policy.limits == Limits(attempts=None, timeout=600)
    assert policy.service == RECOMMENDED
    assert service_of(policy).statuses == {408, 429, 500, 502, 503, 504}


def test_they_are_made_once() -> None:
    """The same object every time, so that identity can be relied on."""
    assert cloud_storage.policy is cloud_storage.policy
    assert cloud_storage.documented is cloud_storage.documented


def documents() -> dict[str, str | None]:
    """The docstrings of the profiles."""
    from forbear.services.cloud_storage import profiles

    named = (profiles.policy, profiles.documented_2020, profiles.python_client, profiles.gsutil)
    return {profile.__name__: profile.__doc__ for profile in named}


def test_every_difference_has_its_reason_in_the_docstring() -> None:
    """Who reads the docstring of `policy` knows what departs from the page."""
    text = documents()["policy"] or ""
    for word in ("jitter", "501", "429", "start of a resumable session", "If-Match", "does not name"):
        assert word in text


def test_the_documented_profile_warns_of_if_match() -> None:
    """No row of the recommended profile counts the header; where the page does, its docstring says what may happen."""
    from forbear.services.cloud_storage import json_api, profiles, xml_api

    header = ("h", "If-Match")
    rows = [*json_api.operations(), *xml_api.operations()]
    assert not [row.id for row in rows if any(header in terms for terms in row.rule.conditions)]
    assert [row.id for row in rows if row.documented and any(header in terms for terms in row.documented.conditions)]
    text = profiles.documented.__doc__ or ""
    for word in ("Warning", "If-Match", "second execution", "ifMetagenerationMatch"):
        assert word in text


def test_no_table_is_loaded_before_a_request_is_seen() -> None:
    """Finding a service costs a look at the host; reading its tables waits for the first request."""
    code = """
import sys
import forbear
assert not [name for name in sys.modules if name.startswith("forbear.services")]
from forbear.services import find
assert find("example.com", "/") is None
assert "forbear.services.cloud_storage.service" not in sys.modules
assert find("storage.googleapis.com", "/") and find("iam.googleapis.com", "/") and find("redis.googleapis.com", "/")
for name in ("json_api", "xml_api"):
    assert sys.modules["forbear.services.cloud_storage." + name].operations.cache_info().currsize == 0, name
assert sys.modules["forbear.services.cloud_storage.service"].rpc_operations.cache_info().currsize == 0
assert sys.modules["forbear.tables.operations"].rows.cache_info().currsize == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
