"""A reader of files whose process is killed by some of them; processes import it, so it imports little."""

import os
import signal
from pathlib import Path

from forbear_audit.rules.file_findings import Reading, read_file
from forbear_audit.settings import AuditSettings


def read_batch(batch: list[Path], settings: AuditSettings) -> Reading:
    """Read files; one that is named deadly kills the process, as the kernel does when memory is short."""
    total = Reading()
    for path in batch:
        if path.name.startswith("deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        total.add(read_file(path, settings.counts))
    return total
