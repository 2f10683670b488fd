"""Build the source distributions and the wheels of the five packages, and check them as a user gets them.

`python -m tools.dist` builds all into dist/, lints them, and tries each wheel in an environment of its own.
`python -m tools.dist --tests` also runs the tests that each source distribution brings, with the wheels of the others.
"""

import filecmp
import os
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from readme_renderer import markdown

from tools.environments import PACKAGES, ROOT, fresh, install, install_locked, run
from tools.sbom import required

DIST = ROOT / "dist"
BIN = Path(sys.executable).parent


def build(package: Path, folder: Path) -> tuple[Path, Path]:
    """Build both of a package into dist/, and return the unpacked source distribution in `folder`, and the wheel.

    Both are built again from the unpacked source distribution, so in another folder, from files of other times and
    modes, and must be equal byte for byte.
    """
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST, cwd=package)
    name = package.name.replace("-", "_")
    (archive,), (wheel,) = DIST.glob(f"{name}-[0-9]*.tar.gz"), DIST.glob(f"{name}-[0-9]*.whl")
    unpacked = unpack(archive, folder)
    for path in unpacked.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    again = folder / "again" / name
    run(sys.executable, "-m", "hatchling", "build", "-d", again, cwd=unpacked)
    for one in (archive, wheel):
        if not filecmp.cmp(one, again / one.name, shallow=False):
            sys.exit(f"error: {one.name} made from the source distribution is not the one made from the repository")
    return unpacked, wheel


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack `archive` in `folder`, and return the one folder that it makes."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def lint(unpacked: Path, wheel: Path) -> None:
    """Check what the wheel and the source distribution hold, and that the README renders on a package index's page."""
    run(BIN / "check-wheel-contents", "--toplevel", ",".join(_top_level(unpacked)), wheel)
    package = wheel.name.partition("-")[0]
    allowed = re.compile(rf"{package}/|forbear_(storm_)?pytest\.py$|{package}-[^/]+\.dist-info/")
    with zipfile.ZipFile(wheel) as files:
        if strange := [name for name in files.namelist() if not allowed.match(name)]:
            sys.exit(f"error: {wheel.name} has files of no package: {', '.join(strange)}")
    if package == "forbear" and [need for need in required(wheel) if need["scope"] == "required"]:
        sys.exit(f"error: {wheel.name} requires packages of others; without an extra it must not")
    for name in ("ARCHITECTURE.md", "LICENSE", "README.md", "tests"):
        if not (unpacked / name).exists():
            sys.exit(f"error: the source distribution {unpacked.name} lacks {name}")
    text = (unpacked / "README.md").read_text(encoding="utf-8")
    page = markdown.render(text)
    if page is None or page.count("<pre") < text.count("\n```") // 2:
        sys.exit(f"error: README.md of {unpacked.name} does not render as Markdown, or its code blocks do not")


def _top_level(unpacked: Path) -> list[str]:
    return sorted(path.name for path in (unpacked / "src").iterdir() if path.name != "__pycache__")


def smoke(folder: Path, wheels: dict[str, Path]) -> None:
    """Install each wheel alone where nothing of the repository is, and use it.

    Where a package needs forbear, that is the wheel of forbear. Last comes the command line with all five.
    """
    script = shutil.copy(ROOT / "tools" / "smoke.py", folder)
    for name, wheel in wheels.items():
        python = fresh(folder / "installed" / name)
        needed = () if name in ("forbear", "forbear-cloud") else (wheels["forbear"],)
        install(python, wheel, *needed, cwd=folder)
        run(python, "-I", script, name.replace("-", "_"), cwd=folder)
    python = fresh(folder / "installed" / "all")
    siblings = [wheel for name, wheel in wheels.items() if name != "forbear"]
    install(python, f"forbear[cli] @ {wheels['forbear'].as_uri()}", *siblings, cwd=folder)
    run(python, "-I", script, "commands", cwd=folder)


def test(folder: Path, wheels: dict[str, Path], sources: dict[str, Path]) -> None:
    """Run the tests of each source distribution against all five wheels, by the settings of the repository."""
    python = fresh(folder / "tested")
    install_locked(python)
    install(python, "--no-deps", "--no-build-isolation", *wheels.values(), ROOT / "tools" / "testkit")
    # Programs that the tests start are those of this environment.
    env = {"PATH": f"{python.parent}:{BIN}:{os.environ['PATH']}", "FORBEAR_ROOT": str(ROOT)}
    words = ("-m", "pytest", "--quiet", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider")
    for name, source in sources.items():
        print(f"== the tests of {name}", flush=True)
        shutil.copy(ROOT / "conftest.py", source / "conftest.py")
        run(python, *words, "-c", ROOT / "pyproject.toml", "--rootdir", source, source / "tests", cwd=source, env=env)


def main() -> None:
    """Build and check; with `--tests` also run the tests that the source distributions bring."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="forbear-dist-") as name:
        folder = Path(name)
        sources, wheels = dict[str, Path](), dict[str, Path]()
        for package in PACKAGES:
            sources[package.name], wheels[package.name] = build(package, folder)
            lint(sources[package.name], wheels[package.name])
        run(BIN / "twine", "check", "--strict", *sorted(DIST.iterdir()))
        smoke(folder, wheels)
        if "--tests" in sys.argv[1:]:
            test(folder, wheels, sources)
    print(f"{len(wheels)} wheels and their source distributions are in {DIST.name}/")


if __name__ == "__main__":
    main()
