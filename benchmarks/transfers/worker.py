"""A program: runs one transfer by one contender in a process of its own, and prints the outcome as JSON.

`python -m benchmarks.transfers.worker NAME` with a task on stdin; without a task it prints the contender's version.
"""

import json
import os
import sys
from importlib import import_module

from benchmarks.transfers.contenders import CONTENDERS
from benchmarks.transfers.task import Outcome, Task


def main() -> None:
    # Clients may print what they like, but not here.
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        module = import_module(f"benchmarks.transfers.{CONTENDERS[sys.argv[1]].module}")
        text = sys.stdin.read()
        if text:
            outcome: Outcome = module.run(Task(**json.loads(text)))
            print(json.dumps(outcome._asdict()), file=answer)
        else:
            print(json.dumps(module.version()), file=answer)


if __name__ == "__main__":
    main()
