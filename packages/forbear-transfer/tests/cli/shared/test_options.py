"""`forbear cp` and `forbear rsync`: what is refused before anything is connected to, and how quickly they start."""

import subprocess
import sys
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.cli.running import Invoke

RSYNC = ("here", "gs://bkt/")
UP = ("here.txt", "gs://bkt/")
HERE = ("--endpoint", "http://localhost:1", *UP)
BAD = [
    (("cp", "--limit-rate", "0", *UP), "invalid value for `--limit-rate`: a rate must be a number of bytes per second"),
    (("cp", "--limit-rate", "5X", *UP), "such as 500K or 1.5M, got '5X'"),
    (("cp",), "error: missing argument 'TARGET'\nhint: see `forbear cp --help`\n"),
    (("cp", "gs://bkt/"), "error: missing argument 'SOURCE...'\nhint: see `forbear cp --help`\n"),
    (("cp", "-q", "-v", *UP), "error: `--verbose` does not go with `--quiet`"),
    (("cp", "--exit-code", *UP), "error: `--exit-code` is for `--dry-run`\nhint: add --dry-run, or leave it out\n"),
    (("cp", "--dry-run", "--manifest", "m", *UP), "error: `--manifest` does not go with `--dry-run`, which records"),
    (("cp", "--if-generation-match", "-1", *UP), "error: invalid value for `--if-generation-match`: -1 is not in"),
    (("cp", "-n", "--if-generation-match", "0", *UP), "error: `--if-generation-match` does not go with `--no-clobber`"),
    (("cp", "-r", "--if-generation-match", "0", *UP), "error: `--if-generation-match` is for a single file or object"),
    (("cp", "--if-generation-match", "5", "gs://bkt/a", "."), "`--if-generation-match` is for targets in the cloud"),
    (
        ("cp", "--header", "X-Test", *HERE),
        "error: `--header` must be a name, a colon and a value, got 'X-Test'\nhint: ",
    ),
    (("cp", "--header", "Content-Range: x", *HERE), "error: `--header` must not set Content-Range, which transfers"),
    (("cp", "--header", "X: 1", "--header", "x: 2", *HERE), "error: `--header` sets x twice\nhint: leave one of them"),
    (("cp", "--header", "a b: x", *HERE), "error: `--header` must have names of letters, digits and dashes, got 'a b'"),
    (("cp", "--header", "X: a\nY: b", *HERE), "error: `--header`: the value of X must be visible ASCII characters"),
    (
        ("cp", "--header", "Authorization: x", "--endpoint", "http://gcs.invalid", *UP),
        "error: `--header` must not send Authorization to http://gcs.invalid over plain http\nhint: use https",
    ),
    (("cp", "--gzip", "gs://bkt/a", "."), "error: `--gzip` is for uploads, got gs://bkt/a to .\nhint: leave it out"),
    (("cp", "--packed", *UP), "error: `--packed` is for downloads, got here.txt to gs://bkt/\nhint: leave it out"),
    (("cp", "--files-from", "none", "gs://bkt/"), "error: invalid value for `--files-from`: File 'none' does not"),
    (("cp", "--files-from", "empty", "gs://bkt/"), "error: `--files-from` needs at least one source, and empty has"),
    (("cp", "--include", "a{99999999999999999999}", *UP), "error: `--include` must be a regular expression, got 'a{9"),
    (("cp", "--include", "(", *UP), "error: `--include` must be a regular expression, got '('"),
    (("cp", "--metadata", "a", *UP), "error: `--metadata` must be KEY=VALUE, got 'a'\nhint: such as --metadata "),
    (("cp", "--metadata", "a=1", "--metadata", "a=2", *UP), "error: `--metadata` sets a twice"),
    (("cp", "--cache-control", "", *UP), "error: `--cache-control` must be printable and not empty, got ''"),
    (("cp", "--cache-control", "x", "gs://bkt/a", "."), "error: `--cache-control` is for targets in the cloud, got ."),
    (("rsync", "-c", "--size-only", *RSYNC), "error: `--checksum` does not go with `--size-only`\nhint: leave one"),
    (("rsync", "--max-delete", "1", *RSYNC), "error: `--max-delete` is for `--delete`\nhint: use both, or none\n"),
    (("rsync", "--max-delete", "-1", *RSYNC), "error: invalid value for `--max-delete`: -1 is not in the range x>=0"),
    (("rsync", "--exit-code", *RSYNC), "error: `--exit-code` is for `--dry-run`"),
    (("cp", "--parallel", "0", *UP), "error: invalid value for `--parallel`: 0 is not in the range x>=1"),
    (("cp", "--faults", "1", *UP), "error: `--faults` is for the embedded cloud only\nhint: add --embedded"),
    (("rsync", "--faults", "1", *UP), "error: `--faults` is for the embedded cloud only\nhint: add --embedded"),
    (("cp", "--anonymous", "--credentials", "key.json", *UP), "error: `--anonymous` does not go with `--credentials`"),
    (("cp", "--anonymous", "--impersonate", "a@b", *UP), "error: `--anonymous` does not go with `--impersonate`"),
    (
        ("cp", "--embedded", "--endpoint", "http://localhost:1", *UP),
        "error: `--embedded` does not go with `--endpoint`",
    ),
    (("cp", "--embedded", "--user-project", "p", *UP), "error: `--embedded` does not go with `--user-project`"),
    (
        ("cp", "--exclude", "*.tmp", *UP),
        "error: `--exclude` must be a regular expression, got '*.tmp': nothing to repeat",
    ),
    (
        ("cp", "--retry", "attempts=none,timeout=none", *UP),
        "error: `--retry attempts=` and `--retry timeout=` must not both be none",
    ),
    (("cp", "--retry", "constant=1,initial=1", *UP), "error: `--retry constant=` does not go with `--retry initial=`"),
    (("cp", "-r", "-", "gs://bkt/a"), "error: `-` does not go with `-r`\nhint: a stream is one file, not a folder\n"),
    (("cp", "-", "a", "gs://bkt/a"), "error: `-` must be the only source\nhint: "),
    (("cp", "--json", "gs://bkt/a", "-"), "error: `--json` does not go with `-` as the target\nhint: both would write"),
    (("cp", "--manifest", "done.csv", "-", "gs://bkt/a"), "error: `--manifest` does not go with `-`"),
    (("rsync", "a"), "error: missing argument 'TARGET'"),
    (("rsync", "a", "b", "gs://bkt/"), "error: got unexpected extra argument (gs://bkt/)"),
    (("rsync", "-d", "a", "b", "gs://bkt/"), "error: got unexpected extra argument (gs://bkt/)"),
    (
        ("cp", "a", "b"),
        "target must begin with gs://, got a and b\nhint: on this machine alone, use the cp of the system\n",
    ),
    (("cp", "a", "gs://BKT/"), "error: an address must name a bucket"),
    (("cp", "--embedded", "gs://BKT/a", "."), "error: an address must name a bucket"),
    (("cp", "--endpoint", "ftp://localhost", *UP), "error: `--endpoint` must be an http or https URL"),
    (
        ("rsync", "a", "b"),
        "must begin with gs://, got a and b\nhint: on this machine alone, use the rsync of the system\n",
    ),
    (("rsync", "-", "gs://bkt/"), "error: `-` is no folder\nhint: `forbear cp` copies streams\n"),
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    for name in ("here.txt", "key.json", "a"):
        Path(name).write_text("{}")
    Path("here").mkdir()
    Path("empty").write_text("\n")


@pytest.mark.parametrize(("args", "text"), BAD, ids=[" ".join(args) for args, _ in BAD])
def test_what_cannot_be(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """Options that do not go together are refused in words, with exit code 2."""
    done = invoke(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr


@pytest.mark.parametrize("command", ["cp", "rsync"])
def test_help_loads_no_engine(command: str) -> None:
    """Help and refusals cost no more than those of other commands."""
    script = f"import sys; import forbear_transfer.cli.{command}; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"rich", "asyncio", "httptools", "google_crc32c", "h11", "forbear_transfer.functions"} & set(loaded)


@pytest.mark.parametrize(
    ("module", "args", "hint"),
    [
        ("httptools", ("cp", "a", "gs://bkt/"), 'hint: pip install "forbear[transfer]"'),
        ("google.auth", ("cp", "a", "gs://bkt/"), 'hint: pip install "forbear[transfer]"'),
        ("h11", ("cp", "--embedded", "a", "gs://bkt/"), 'hint: pip install "forbear[cloud]"'),
    ],
)
def test_a_missing_package_is_named(module: str, args: tuple[str, ...], hint: str, env: dict[str, str]) -> None:
    """If an optional package is missing, two lines say which and how to install it, and the exit code is 2."""
    script = f"import sys; sys.modules[{module!r}] = None; from forbear.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *args], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [hint]


def test_faults_of_an_embedded_cloud_are_counted(invoke: Invoke) -> None:
    """`--faults` of an embedded cloud says at the end how many requests met a fault."""
    done = invoke("rsync", "-r", "--embedded", "--faults", "7", "here", "gs://demo/")
    assert done.stderr.endswith(" met a fault\n")


def test_literal_and_pattern_say_what_an_address_means(cloud: Cloud, invoke: Invoke) -> None:
    """A name comes first; both options at once are refused, and `rm` needs one where both could be meant."""
    for name in ("file[1].txt", "file1.txt"):
        cloud.store.put("bkt", name, name.encode())

    def run(*words: str) -> tuple[int, str]:
        done = invoke(*words, "--endpoint", cloud.url)
        return done.exit_code, done.stdout or done.stderr

    address = "gs://bkt/file[1].txt"
    assert run("ls", "--pattern", address) == (0, "gs://bkt/file1.txt\n")
    assert run("ls", address) == run("ls", "--literal", address) == (0, "'gs://bkt/file[[]1].txt'\n")
    code, error = run("rm", "-y", address)
    assert (code, "--literal" in error, "--pattern" in error) == (2, True, True)
    assert run("rm", "--literal", "--pattern", address)[0] == 2
    assert run("rm", "--literal", address)[0] == 0
    assert [one.name for one in cloud.store.bucket("bkt").versions()] == ["file1.txt"]
