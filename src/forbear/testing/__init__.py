"""What tests of retrying code need: time that does not pass, scripted callables, fixtures for pytest, and a cloud."""

from forbear.testing.script import AsyncScript, Call, Script, ScriptEnded
from forbear.testing.virtual_time import VirtualTime, virtual_time

__all__ = ["AsyncScript", "Call", "Script", "ScriptEnded", "VirtualTime", "virtual_time"]
