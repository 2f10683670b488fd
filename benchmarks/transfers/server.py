"""A program: the embedded cloud in a process of its own, told by lines of JSON on stdin what to hold and to say.

It prints its URL, then one line of JSON for each line it reads, and ends with its input.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from benchmarks.transfers.task import BUCKET
from forbear_cloud import Cloud, Fault

_BODY_LIMIT = 2**32


def main() -> None:
    with Cloud(body_limit=_BODY_LIMIT, memory_limit=4 * _BODY_LIMIT) as cloud:
        print(cloud.url, flush=True)
        for line in sys.stdin:
            print(json.dumps(_obey(cloud, **json.loads(line))), flush=True)


def _obey(cloud: Cloud, do: str, **how: str) -> object:
    match do:
        case "empty":
            cloud.reset()
            cloud.store.create_bucket(BUCKET)
        case "fill":
            for path in Path(how["folder"]).iterdir():
                cloud.store.put(BUCKET, how["prefix"] + path.name, path.read_bytes())
        case "watch":
            cloud.clear_faults()
            cloud.requests.clear()
            cloud.effects.clear()
            share = float(how["share"])
            if how["weather"] == "503":
                cloud.fault(Fault.status(503, probability=share, times=None))
            elif how["weather"] == "lost":
                cloud.fault(Fault.reset(when="after", probability=share, times=None))
        case _:
            return _seen(cloud)
    return None


def _seen(cloud: Cloud) -> object:
    """What is stored, how many generations of each object were made since, what struck, and the CPU time so far."""
    with cloud.store.lock:
        live = {name: cloud.store.bucket(BUCKET).live(name) for name in cloud.store.bucket(BUCKET).objects}
        made = {(effect.resource, effect.generation) for effect in cloud.effects if effect.generation is not None}
        return {
            "stored": {name: item.crc32c for name, item in live.items() if item is not None},
            "generations": Counter(resource.removeprefix(f"{BUCKET}/") for resource, _ in made),
            "requests": cloud.requests.total,
            "faults": sum(request.fault is not None for request in cloud.requests),
            "seconds": process_time(),
        }


if __name__ == "__main__":
    main()
