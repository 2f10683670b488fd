"""What tests of retrying code need: time that does not pass, scripted callables, fixtures for pytest, and a cloud."""

from forbear.testing.virtual_time import VirtualTime, virtual_time

__all__ = ["VirtualTime", "virtual_time"]
