"""Calls into other files of the package: what is read of them, and how much."""

from pathlib import Path

import pytest

from forbear_audit import Audit, AuditSettings, audit
from forbear_audit.reading import packages, sources
from forbear_audit.rules.catalog import RULES

EVERY = AuditSettings(select=tuple(RULES))
INNER = "import tenacity\n@tenacity.retry\ndef inner(): g()\n"


def outer(*names: str) -> str:
    """The code of a module with one retry around a call into each of other modules."""
    loops = "".join(f"@tenacity.retry\ndef f{name}(): {name}.inner()\n" for name in names)
    return f"import tenacity\nimport {', '.join(names)}\n{loops}"


def nested(result: Audit) -> list[int]:
    """The lines of the retries around another one."""
    return [finding.line for finding in result.findings if finding.rule == "NESTED"]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept of the modules of other tests."""
    monkeypatch.setattr(packages, "_kept", {})


@pytest.mark.parametrize(
    ("head", "followed"),
    [
        (b"", True),
        (b"\xef\xbb\xbf", True),
        (b"# coding: latin-1\n# \xe4\n", True),
        (b"# coding: punycode\n", False),
        (b"# coding: IDNA\n", False),
        (b"# coding: no\n", False),
        (b"# coding: rot13\n", False),
        (b"# \xff\n", False),
        (b"# \0\n", False),
        (b"(" * 300, False),
        (b"#" * 2_000_001 + b"\n", False),
    ],
)
def test_modules_are_read_as_audited_files_are(head: bytes, followed: bool, tmp_path: Path) -> None:
    """An encoding of domain names, a binary file and too large a file are not followed."""
    (tmp_path / "a.py").write_bytes(head + INNER.encode())
    (tmp_path / "main.py").write_text(outer("a"))
    assert bool(nested(audit([tmp_path / "main.py"], settings=EVERY))) is followed


def test_no_device_is_followed(tmp_path: Path) -> None:
    """A module that is a link to a device, to nothing or to itself is not followed."""
    for name, target in {"a": "/dev/zero", "b": "none", "c": "c.py"}.items():
        (tmp_path / f"{name}.py").symlink_to(target)
    (tmp_path / "main.py").write_text(outer("a", "b", "c"))
    assert nested(audit([tmp_path / "main.py"], settings=EVERY)) == []


def test_the_bytes_of_all_followed_modules_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From each file modules are followed up to the limit, whatever was read before, and no more trees are kept."""
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text(INNER)
    (tmp_path / "x.py").write_text(outer("a", "b", "c", "d"))
    (tmp_path / "y.py").write_text(outer("d", "c", "b", "a"))
    monkeypatch.setattr(packages, "_MOST", 3 * len(INNER) - 1)
    for jobs in ([tmp_path / "x.py", tmp_path / "y.py"], [tmp_path / "y.py"]):
        result = audit(jobs, settings=EVERY)
        assert nested(result) == [4, 6] * len(jobs)
        assert sum(size for _, size in packages._kept.values()) <= packages._MOST
        assert len(packages._kept) == 2


def test_a_module_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many calls into few modules read each of them once."""
    read: list[Path] = []
    whole = sources.read_tree

    def noted(path: Path) -> object:
        read.append(path)
        return whole(path)

    monkeypatch.setattr(sources, "read_tree", noted)
    for name in "ab":
        (tmp_path / f"{name}.py").write_text(INNER)
    (tmp_path / "main.py").write_text(outer(*"ab" * 5))
    assert len(nested(audit([tmp_path / "main.py"], settings=EVERY))) == 10
    assert sorted(path.name for path in read) == ["a.py", "b.py"]
