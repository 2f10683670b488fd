"""Import time: fresh interpreters, each importing one library."""

import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import Effort, Sampler, race, repeated
from benchmarks.table import OURS, PEERS, Table, Target

BARE = "bare interpreter"
_LIBRARIES = {
    "tenacity": "tenacity",
    "stamina": "stamina",
    "backoff": "backoff",
    "google-api-core": "google.api_core.retry",
    "opnieuw": "opnieuw",
    "redis-py": "redis.retry",
    "redress": "redress",
}


def imports(effort: Effort) -> Table:
    """Start an interpreter, import, end."""
    statements = {BARE: "pass", OURS: f"import {OURS}"}
    statements |= {name: f"import {module}" for name, module in _LIBRARIES.items()}
    samplers: dict[str, Sampler] = {name: repeated(_interpreter(code)) for name, code in statements.items()}
    samples = race(samplers, effort._replace(rounds=effort.processes, seconds=0))
    targets = Target(OURS, 1.9, BARE), Target(OURS, 1.0, PEERS)
    title = "Start an interpreter and import"
    return Table("import", title, "ms", 1e3, samples, (BARE,), targets, tuple(_LIBRARIES), ("python -I -c ...",))


def _interpreter(code: str) -> Callable[[], object]:
    command = [sys.executable, "-I", "-c", code]
    return lambda: subprocess.run(command, check=True)
