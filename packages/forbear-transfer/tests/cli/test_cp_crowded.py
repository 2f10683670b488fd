"""`forbear cp` where few files may be open at a time: it takes turns, and fails nothing."""

import resource
import shlex
import subprocess
from pathlib import Path

from forbear_cloud import Cloud
from forbear_testkit.cli.running import FORBEAR

FILES = 150


def limited(soft: int, hard: int, *args: str) -> list[str]:
    """Return a command that runs forbear with limits on open files."""
    command = f"ulimit -Sn {soft}; ulimit -Hn {hard}; exec {shlex.join([*FORBEAR, *args])}"
    return ["bash", "-c", command]


def test_every_file_is_copied_once_where_files_run_out(tmp_path: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """Files and connections that cannot be opened wait for others to close theirs, up and down."""
    folder = tmp_path / "dir"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}").write_bytes(b"x" * 10)
    ways = [(str(folder), "gs://bkt/x"), ("gs://bkt/x", str(tmp_path / "down"))]
    for source, target in ways:
        options = ("--endpoint", cloud.url, "--parallel", "100", "--retry", "initial=0.001,jitter=none")
        command = limited(40, 40, "cp", "-r", *options, source, target)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr.partition(",")[0]) == (0, f"{FILES} files")
    assert cloud.effects.count("storage.objects.insert") == FILES
    assert len(list((tmp_path / "down").iterdir())) == FILES


def test_the_soft_limit_is_raised_first(tmp_path: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """No transfer has to wait where the hard limit allows for all of them."""
    folder = tmp_path / "dir"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}").write_bytes(b"x")
    hard = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    command = limited(40, hard, "cp", "-r", "--endpoint", cloud.url, "--parallel", "100", str(folder), "gs://bkt/x")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "retr" in done.stderr) == (0, False)
