"""The bill of materials of a release: the packages with their hashes, and what they require."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from tools.sbom import main

METADATA = """Metadata-Version: 2.4
Name: forbear
Version: 1.2.3
License-Expression: Apache-2.0
Provides-Extra: httpx
Requires-Dist: h11>=0.14
Requires-Dist: httpx>=0.27; extra == 'httpx'
Requires-Dist: forbear-cloud==1.2.3; extra == 'cloud'

A text.
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with nothing but its metadata."""
    path = tmp_path / "dist" / "forbear-1.2.3-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("forbear-1.2.3.dist-info/METADATA", METADATA)
    return path


def test_a_bill(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the wheel by its hash, and requirements by their range and extra; packages of ours are no requirement."""
    files = [tmp_path / "build" / name for name in ("one.json", "two.json")]
    for file in files:
        monkeypatch.setattr(sys, "argv", ["sbom", str(wheel.parent), str(file)])
        main()
    assert files[0].read_bytes() == files[1].read_bytes()
    bill = json.loads(files[0].read_text(encoding="utf-8"))
    ours, *others = bill["components"]
    assert (ours["purl"], ours["licenses"]) == ("pkg:pypi/forbear@1.2.3", [{"expression": "Apache-2.0"}])
    assert ours["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    found = [(one["name"], one["scope"], {note["name"]: note["value"] for note in one["properties"]}) for one in others]
    assert found == [
        ("h11", "required", {"forbear:range": ">=0.14"}),
        ("httpx", "optional", {"forbear:range": ">=0.27", "forbear:extra": "httpx"}),
    ]
    assert bill["dependencies"] == [{"ref": "forbear", "dependsOn": [one["bom-ref"] for one in others]}]


def test_without_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without wheels is an error that names the cure."""
    monkeypatch.setattr(sys, "argv", ["sbom", str(tmp_path), str(tmp_path / "bill.json")])
    with pytest.raises(SystemExit, match="make dist"):
        main()
