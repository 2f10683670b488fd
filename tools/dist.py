"""Build the source distribution and the wheel, and check both as a user gets them.

`python -m tools.dist` builds both into dist/, lints them, and tries the wheel in an environment of its own.
`python -m tools.dist --tests` unpacks the source distribution and runs `make test` there, where git is not.
"""

import filecmp
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from readme_renderer import markdown

from tools.environments import ROOT, fresh, install, run

DIST = ROOT / "dist"
BIN = Path(sys.executable).parent


def build(folder: Path) -> tuple[Path, Path]:
    """Build both into dist/, and return the unpacked source distribution in `folder`, and the wheel.

    The wheel is made from the source distribution, and must equal byte for byte the one made from the repository.
    """
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    (archive,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    unpacked = unpack(archive, folder)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "again", cwd=unpacked)
    if not filecmp.cmp(wheel, folder / "again" / wheel.name, shallow=False):
        sys.exit("error: the wheel made from the source distribution is not the one made from the repository")
    return unpacked, wheel


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack `archive` in `folder`, and return the one folder that it makes."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def lint(unpacked: Path, wheel: Path) -> None:
    """Check the metadata, the contents of the wheel, and that the README renders as on a package index's page."""
    run(BIN / "check-wheel-contents", wheel)
    run(BIN / "twine", "check", "--strict", *sorted(DIST.iterdir()))
    text = (unpacked / "README.md").read_text(encoding="utf-8")
    page = markdown.render(text)
    if page is None or page.count("<pre") < text.count("\n```") // 2:
        sys.exit("error: README.md does not render as Markdown, or its code blocks do not")


def smoke(folder: Path, wheel: Path) -> None:
    """Install the wheel where nothing of the repository is: every module without extras, then the command line."""
    python = fresh(folder / "installed")
    script = shutil.copy(ROOT / "tools" / "smoke.py", folder)
    install(python, wheel, cwd=folder)
    run(python, "-I", script, cwd=folder)
    install(python, f"forbear[cli] @ {wheel.as_uri()}", cwd=folder)
    run(python, "-I", script, "cli", cwd=folder)


def main() -> None:
    """Build and check; with `--tests` also run the tests that the source distribution brings."""
    with tempfile.TemporaryDirectory(prefix="forbear-dist-") as name:
        folder = Path(name)
        unpacked, wheel = build(folder)
        lint(unpacked, wheel)
        smoke(folder, wheel)
        if "--tests" in sys.argv[1:]:
            run("make", "test", cwd=unpacked, env={"PYTHON": sys.executable})
    print(f"{wheel.name} and its source distribution are in {DIST.name}/")


if __name__ == "__main__":
    main()
