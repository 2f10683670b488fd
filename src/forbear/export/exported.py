"""What an export gives: the policy in another system's words, and what of it those cannot say."""

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Exported(NamedTuple, Generic[T]):
    """`value` is what the target takes, `losses` what it does otherwise than the policy, one sentence each."""

    value: T
    losses: tuple[str, ...]
