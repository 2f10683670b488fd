"""Observe: tells loggers, traces and metrics what becomes of failed attempts. It decides nothing and waits for nothing.

Each library has a module of its own with the listener for it: `forbear.observe.logging`, `.opentelemetry`,
`.prometheus` and `.structlog`. `listen` has listeners told of all runs in the process, `all_of` makes one of several.
"""

from forbear.observe.process import all_of, listen

__all__ = ["all_of", "listen"]
