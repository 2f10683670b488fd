"""Tools to test code that retries: virtual time, scripted callables, fixtures for pytest, and an embedded cloud."""

from forbear.testing.script import AsyncScript, Call, Script, ScriptEnded
from forbear.testing.virtual_time import VirtualTime, virtual_time

__all__ = ["AsyncScript", "Call", "Script", "ScriptEnded", "VirtualTime", "virtual_time"]
