"""The pages on which trust rests: the threat model names tests that exist, and each file says the same version."""

import re
from pathlib import Path

import forbear
from forbear_testkit import ROOT

SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
MODEL = SECURITY.partition("## Threat model")[2].partition("\n## ")[0]


def test_every_threat_has_tests() -> None:
    """Each line of the threat model names the tests that hold it, and these have tests."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", MODEL, re.MULTILINE)[1:]
    assert len(rows) >= 16
    for threat, cell in rows:
        names = [name.replace("…", "packages/forbear/tests") for name in re.findall(r"`([^`]+)`", cell)]
        assert names, threat
        for name in names:
            path = ROOT / name
            files = [path] if path.suffix else [*path.rglob("test_*.py")]
            assert any("\ndef test_" in text or "\nasync def test_" in text for text in map(read, files)), name


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def test_the_model_is_one_page() -> None:
    """The threat model can be read at once."""
    assert len(MODEL) <= 6500


def test_the_citation_has_the_version() -> None:
    """CITATION.cff has the version and the licence of the packages."""
    text = read(ROOT / "CITATION.cff")
    assert f"\nversion: {forbear.__version__}\n" in text
    assert "\nlicense: Apache-2.0\n" in text


def test_the_notice_is_in_the_wheel() -> None:
    """The package with the data has the NOTICE of the repository, and names it as a file of its licence."""
    folder = ROOT / "packages" / "forbear"
    assert read(folder / "NOTICE") == read(ROOT / "NOTICE")
    assert 'license-files = ["LICENSE", "NOTICE"]' in read(folder / "pyproject.toml")


def test_the_notice_names_every_service() -> None:
    """Each package of tables has its source in the NOTICE."""
    services = ROOT / "packages" / "forbear" / "src" / "forbear" / "services"
    folders = {path.parent.name for path in services.rglob("*.csv")}
    assert [name for name in sorted(folders) if name not in read(ROOT / "NOTICE")] == []
