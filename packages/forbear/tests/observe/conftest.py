"""Whoever listens to the process is back in place after each test."""

from forbear_testkit.observe.listening import listening_as_ever

__all__ = ["listening_as_ever"]
