"""Measure all clients in an environment of their own, simulate AWS's quota, store the figures: `make sdk-repeats`."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from docs.generate.sdk_repeats import measured_quota, store
from tools.environments import PACKAGES, ROOT, fresh, install, surroundings


def main() -> None:
    """Write docs/generate/sdk_repeats.json; an error of a trial ends this program."""
    with tempfile.TemporaryDirectory(prefix="forbear-sdks-") as name:
        python = fresh(Path(name))
        install(python, "--require-hashes", "-r", "requirements/clients.txt")
        ours = (word for folder in (PACKAGES[0], ROOT / "tools" / "testkit") for word in ("--editable", folder))
        install(python, "--no-deps", "--no-build-isolation", *ours)
        done = subprocess.run(
            [python, "-m", "tools.sdk_repeats.measure"],
            cwd=ROOT,
            env=surroundings(),
            stdout=subprocess.PIPE,
            check=True,
        )
    measured: dict[str, Any] = json.loads(done.stdout)
    store({**measured, "quota": measured_quota()})


if __name__ == "__main__":
    main()
