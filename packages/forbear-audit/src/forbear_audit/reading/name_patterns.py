"""The words in names that tell what a function or a variable is for, where its code cannot be read.

All are searched in the text of a name or of an expression.
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

TIME: Final = re.compile(
    r"monotonic|\btime\(|\.time\(|perf_counter|\bnow\(|deadline|timeout|expire|elapsed|until|\bend\b|remaining|left\b|"
    r"budget|max_(?:wait|time|delay|duration|seconds)|seconds_left|time_left|waited"
)
"""The names of clocks, of limits of time, and of the time that has passed."""

CLOCK: Final = re.compile(r"monotonic|\btime\(|\.time\(|perf_counter|\bnow\(|clock\(")
"""A call that reads a clock."""

COUNTS_RETRIES: Final = re.compile(r"retry|retries|backoff|attempt|tries|giv(?:e|ing)_?up|exhaust")
"""The calls that may count the attempts: a schedule, or an object of retries."""

MAXIMUM: Final = re.compile(r"max_|_max\b|retr(?:y|ies)|attempts?|tries", re.IGNORECASE)
"""The names of a limit of attempts, where it is compared."""

HEADER: Final = re.compile(r"retry[-_]?after|retry_in|x-ratelimit", re.IGNORECASE)
"""The header in which a server names the wait, and the names of variables with its value."""

RESET: Final = re.compile(r"rate_?limit[-_]?reset|retry_?delay|retry_?info", re.IGNORECASE)
"""Other places in which a server names the wait."""
