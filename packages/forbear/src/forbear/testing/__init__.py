"""Tools to test code that retries: virtual time, scripted callables and fixtures for pytest.

pytest knows two fixtures once forbear is installed. A test with the argument `virtual_time` runs in virtual time and
gets its `VirtualTime`. In a test with the argument `no_retries`, each call makes one attempt. The embedded cloud is in
`forbear_cloud`.
"""

from forbear.testing.script import AsyncScript, Call, Script, ScriptEnded
from forbear.testing.virtual_clock import VirtualTime, virtual_time

__all__ = ["AsyncScript", "Call", "Script", "ScriptEnded", "VirtualTime", "virtual_time"]
