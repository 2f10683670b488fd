"""The words in names that tell what a function or a variable is for, where its code cannot be read.

All are searched in the text of a name or of an expression, in any case.
"""

import re
from typing import Final

RETRIES: Final = re.compile(r"retr(?!iev)|attempt|(?<!en)(?<!un)(?<!is)tries|trial|back_?off", re.IGNORECASE)
"""Something that repeats: `max_retries`, `attempt`; not `retrieve`, `entries`, `countries` or `registries`."""

RANDOM: Final = re.compile(r"random|jitter|uniform|randint|secrets|gauss|expovariate", re.IGNORECASE)
"""A wait that differs from client to client."""

STOPS: Final = re.compile(
    r"stop|(?:\b|_)event\b|clos(?:ed|ing)|shutdown|cancel|running|is_set|exit|quit|alive|abort", re.IGNORECASE
)
"""A flag or an event by which another thread ends a loop."""

WAITS: Final = re.compile(r"sleep|wait|back_?off|delay|pause|throttle", re.IGNORECASE)
"""A function that may wait."""

_LOGS = r"log|print|echo|debug|info|warn|error\b|exception"

LOGS: Final = re.compile(_LOGS, re.IGNORECASE)
"""A function that only tells people."""

TELLS: Final = re.compile(
    rf"{_LOGS}|message|emit|notify|record|metric|report|append|add|set_|put|str|repr|type|format|len|isinstance",
    re.IGNORECASE,
)
"""A function that tells people, keeps what it gets, or makes a text of it: it neither waits nor raises."""

LOCAL: Final = re.compile(
    r"(?:^|[._])(?:sleep|wait|print|log|debug|info|warn|warning|error|exception|uniform|random|randint|min|max|range|"
    r"format)$",
    re.IGNORECASE,
)
"""The end of the name of a function that is no attempt of anything: it waits, logs or counts."""
