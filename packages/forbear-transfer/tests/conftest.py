"""A cloud, a folder to work in and states of its own for each test."""

from forbear_testkit.transfer.fixtures import cloud, here, own_states, running_cloud

__all__ = ["cloud", "here", "own_states", "running_cloud"]
