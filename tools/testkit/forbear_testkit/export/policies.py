"""Policies to export: hypothesis makes any, and some are named."""

from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential, Sequence
from forbear.core.limits import Limits
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.services import cloud_storage, iam, memorystore, redis, rfc9110


class Busy(Exception):
    """An error that is worth another attempt."""


class Growing:
    """A backoff of the user's own."""

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """A second more each time."""
        return 1.0 + n

    def __repr__(self) -> str:
        return "Growing()"


NAMED = {
    "default": retry(on=OSError),
    "cloud_storage": cloud_storage.policy,
    "cloud_storage.documented": cloud_storage.documented,
    "gsutil": cloud_storage.gsutil,
    "iam": iam.policy,
    "iam.documented": iam.documented,
    "memorystore": memorystore.policy,
    "memorystore.documented": memorystore.documented,
    "redis": redis.policy,
    "rfc9110": rfc9110.policy,
}

backoffs = st.one_of(
    st.builds(
        Exponential,
        initial=st.floats(0.01, 10),
        multiplier=st.floats(1, 4),
        maximum=st.floats(10, 100),
        jitter=st.sampled_from(JITTERS),
    ),
    st.builds(Constant, st.floats(0.01, 10), st.sampled_from([0, 0.5])),
    st.builds(Sequence, st.lists(st.floats(0.01, 10), min_size=1, max_size=4), st.sampled_from([0, 0.5])),
    st.just(Growing()),
)
limits = st.builds(
    Limits,
    attempts=st.none() | st.integers(1, 12),
    timeout=st.none() | st.floats(0.5, 900),
    clamp=st.booleans(),
    unlimited=st.just(True),
)
ons = st.sampled_from([Busy, (Busy, OSError), cloud_storage.policy.on, redis.policy.on])
policies = st.builds(
    Policy,
    on=ons,
    limits=limits,
    backoff=backoffs,
    attempt_timeout=st.none() | st.floats(0.5, 9),
    on_result=st.sampled_from([None, bool]),
    on_event=st.sampled_from([None, print]),
    budget=st.sampled_from([None, Budget(), Budget.aws(), Budget.grpc(), Budget.ratio()]),
    repeatable=st.booleans(),
    retry_exhausted=st.booleans(),
    service=st.sampled_from([None, cloud_storage.policy.service]),
)
