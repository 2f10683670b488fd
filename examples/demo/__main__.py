"""Run the demo by `python -m examples.demo` in the root of a clone."""

from examples.demo import command

command(prog_name="python -m examples.demo")
