"""The command line under test, and a cloud for it."""

from forbear_testkit.cli.running import compiled, env, finish, invoke, start
from forbear_testkit.cli.shown import shell_env
from forbear_testkit.transfer.fixtures import cloud, here, own_states, running_cloud

__all__ = ["cloud", "compiled", "env", "finish", "here", "invoke", "own_states", "running_cloud", "shell_env", "start"]
