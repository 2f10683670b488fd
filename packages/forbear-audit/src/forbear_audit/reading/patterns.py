"""`pattern`: a regular expression with an example of what it recognises, and a near miss that it does not.

The patterns themselves are in `name_patterns` and `text_patterns`; a test searches every example.
"""

import re

EXAMPLES: list[tuple[re.Pattern[str], str, str]] = []
"""Every pattern with its example and its near miss."""


def pattern(regex: str, example: str, near_miss: str) -> re.Pattern[str]:
    """Return a compiled pattern, and keep what it recognises and what it must not."""
    compiled = re.compile(regex)
    EXAMPLES.append((compiled, example, near_miss))
    return compiled
