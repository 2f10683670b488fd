"""Who competes, where each comes from, and how it is set up; the modules themselves are imported by workers only."""

from typing import NamedTuple

from benchmarks.table import OURS

RAW = "raw sockets"


class Contender(NamedTuple):
    """The module that runs it, what is to be said of it, and whether the environment for peers may have it instead."""

    module: str
    setup: str
    peer: bool = True


CONTENDERS = {
    RAW: Contender(
        "raw",
        "the floor: blocking sockets, one connection kept open, no checksums; a small file is one request up (with"
        " ifGenerationMatch=0) and one down, the large one a session of 64 MiB chunks (sendfile) and one GET;"
        " a 503 is repeated at once",
        peer=False,
    ),
    OURS: Contender("ours", "cp with its defaults", peer=False),
    "google-cloud-storage": Contender(
        "google", "one file after the other; the large one up in chunks of 1 MiB, down in one piece", peer=False
    ),
    "transfer_manager": Contender(
        "manager", "google-cloud-storage's, with as many processes as CPUs; the large file in its own parts", peer=False
    ),
    "gsutil": Contender("gsutil", "gsutil -m; it knows only TLS, so a launcher opens its connections without"),
    "gcsfs": Contender("gcsfs", "put and get with lists; without its look for the type of the bucket, which needs TLS"),
    "obstore": Contender("obstore", "asyncio, 8 small files at a time; with a token that nobody checks"),
    "rclone": Contender("rclone", "rclone copy, without a look for the bucket"),
}
