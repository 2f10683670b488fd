"""The settings: broken and hostile tables, and the patterns of `exclude` and `per-file-ignores`."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_audit import AuditSettings, audit
from forbear_audit.settings import _match, read_settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.forbear.audit\n", r"pyproject.toml: Expected ']'"),
        ("x = '\xff'", "pyproject.toml: .*'utf-8' codec can't decode"),
        ("tool = 3\n", "`tool` must be a table, got 3"),
        ("[tool.forbear]\naudit = 3\n", "`tool.forbear.audit` must be a table, got 3"),
        ("[tool.forbear.audit]\nbaseline = 3\n", "`tool.forbear.audit.baseline` must be the name of a file, got 3"),
        ("[tool.forbear.audit]\nselect = ['NOPE']\n", "`tool.forbear.audit.select` must have ids of rules"),
        (
            "[tool.forbear.audit.per-file-ignores]\n'a.py' = ['NOPE']\n",
            "audit.per-file-ignores` must have ids of rules",
        ),
        ("[tool.forbear.audit]\nper-file-ignores = 3\n", "audit.per-file-ignores` must be a table, got 3"),
        ("[tool.forbear.audit]\nexclude = ['']\n", r"audit.exclude` must have patterns that name files or .*, got ''"),
        ("[tool.forbear.audit]\nexclude = ['./']\n", r"audit.exclude` must have patterns .*, got './'"),
        ("[tool.forbear.audit]\nexclude = ['**']\n", r"audit.exclude` must have patterns .*, got '\*\*'"),
        ("[tool.forbear.audit]\nexclude = [3]\n", "audit.exclude` must be a list of texts"),
        ("[tool.forbear.audit]\nfail-on = ['note']\n", "audit.fail-on` must be note, warning, error or never"),
        ("[tool.forbear.audit]\nbaseline = ''\n", "audit.baseline` must be the name of a file, got ''"),
        ("[tool.forbear.audit]\nselect = [inf, nan]\n", r"audit.select` must be a list of texts, got \[inf, nan\]"),
        ("[tool.forbear.audit]\nignore = 1e999\n", "audit.ignore` must be a list of texts, got inf"),
        ("[tool.forbear.audit]\nexclude = {a = 1}\n", "audit.exclude` must be a list of texts, got {'a': 1}"),
        ("[tool.forbear.audit]\nbaseline = 1979-05-27\n", "audit.baseline` must be the name of a file, got datetime"),
        ("[tool.forbear.audit]\nfail-on = -inf\n", "audit.fail-on` must be note, .*, got -inf"),
        (f"[tool.forbear.audit]\nfail-on = 0x{'f' * 5_000}\n", "audit.fail-on` must be note, .* that cannot be shown"),
        (f"[tool.forbear.audit]\nselect = ['{'a' * 5_000}']\n", r"audit.select` must have ids .*, got 'a{199}\.\.\.$"),
        (f"x = {'9' * 5_000}\n", "pyproject.toml: a number has too many digits"),
        (f"x = {'[' * 5_000}\n", "pyproject.toml: its values are nested too deeply"),
        ("[tool.forbear.audit.per-file-ignores]\n'' = ['FIXED']\n", "per-file-ignores` must have patterns .*, got ''"),
    ],
)
def test_settings_that_are_broken(text: str, message: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong in it."""
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        read_settings(tmp_path)


def matches(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Match as the rule reads, without a thought of time."""
    if not wanted:
        return not names
    if wanted[0] == "**":
        return any(matches(names[at:], wanted[1:]) for at in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], wanted[0]) and matches(names[1:], wanted[1:])


@given(
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=5).map(tuple),
    st.lists(st.sampled_from(["a", "*", "**", "?b"]), max_size=5).map(tuple),
)
def test_patterns_match_as_their_rule_reads(names: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    """A pattern matches what the simple rule matches."""
    assert _match(names, wanted) == matches(names, wanted)


def test_patterns_do_not_explode() -> None:
    """A pattern with many folders of any number is compared with a deep path in a moment."""
    assert not _match(("d",) * 200, ("**", "*") * 100 + ("x",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a." * 20_000 + "b = 1\n", "a key must have at most 32 parts"),
        ("#" * 1_000_001, "are more than the limit of 1 MB"),
    ],
)
def test_settings_that_take_too_long(text: str, reason: str, tmp_path: Path) -> None:
    """Dotted keys without an end and files of many megabytes are refused before they are parsed."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    "text",
    ['"a\\"" . \'b\' . ' * 20 + "b = 1\n", "[" + "a." * 40 + "b]\n", "x = [{" + "a." * 40 + "b = 1}]\n"],
    ids=["quoted", "table", "inner"],
)
def test_long_keys_are_refused(text: str, tmp_path: Path) -> None:
    """A key of very many parts is refused in all its forms, because parsers take the cube of its length."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ValueError, match="a key must have at most 32 parts with dots between them"):
        read_settings(tmp_path)


DOTTED = "a." * 3_000


@pytest.mark.parametrize(
    "text",
    [
        f"x = '{DOTTED}'\n",
        f'x = "{DOTTED}\\" b"\n',
        f'x = """\n{DOTTED}"b\n"""\n',
        f"x = '''\n{DOTTED}'b\n'''\n",
        f"# {DOTTED}\n",
        f"x = [{'1.5, ' * 3_000}]\n",
    ],
)
def test_dots_in_values_are_no_long_key(text: str, tmp_path: Path) -> None:
    """Dots in texts, comments and numbers do not count."""
    (tmp_path / "pyproject.toml").write_text(text + "[tool.forbear.audit]\nselect = ['FIXED']\n")
    assert read_settings(tmp_path).select == ("FIXED",)


RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef fetch():\n    return load()\n"


FILES = ("shop/app/a.py", "shop/tests/b.py", "shop/tests/deep/er/c.py", "shop/vendored/x/d.py")


ALL = "abcd"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder that is named like one of the folders in it."""
    folder = tmp_path / "shop" / "repo"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RETRIED)
    return folder


PATTERNS = [
    ("shop", ""),
    ("repo", ALL),
    ("tmp", ALL),
    ("shop/repo", ALL),
    ("tests", "ad"),
    ("tests/", "ad"),
    ("shop/tests", "ad"),
    ("tests/*.py", "acd"),
    ("tests/**", "ad"),
    ("tests/**/*.py", "ad"),
    ("tests/*/*.py", ALL),
    ("**/c.py", "abd"),
    ("shop/**/er", "abd"),
    ("**/**/x/**", "abc"),
    ("[ab].py", "cd"),
    ("?.py", ""),
    ("vend*", "abc"),
    ("*.pyi", ALL),
]


@pytest.mark.parametrize(("pattern", "left"), PATTERNS)
def test_patterns_exclude(pattern: str, left: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern counts from the folder of pyproject.toml, wherever the audit runs, however the files are named."""
    (project / "pyproject.toml").write_text(f'[tool.forbear.audit]\nselect = ["UNBOUNDED"]\nexclude = ["{pattern}"]\n')
    (project.parent / "link").symlink_to(project)
    for cwd, path in (
        (project, "."),
        (project.parent, "repo"),
        (project / "shop", ".."),
        (project.parent, "link/shop"),
    ):
        monkeypatch.chdir(cwd)
        assert "".join(Path(f.path).stem for f in audit([path]).findings) == left
    files = [project / name for name in FILES]
    assert "".join(Path(f.path).stem for f in audit(files).findings) == left


@pytest.mark.parametrize("cwd", ["", "shop", "shop/tests/deep"])
@pytest.mark.parametrize(
    ("pattern", "left"),
    [("tests/*.py", "acd"), ("tests/**", "ad"), ("shop/tests/**/*.py", "ad"), ("repo/**", ALL), ("b.py", "acd")],
)
def test_rules_are_ignored_by_patterns(
    pattern: str, left: str, cwd: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files in which rules are ignored are the same in every current folder."""
    (project / "pyproject.toml").write_text(
        'tool.forbear.audit.select = ["UNBOUNDED"]\n'
        f'[tool.forbear.audit.per-file-ignores]\n"{pattern}" = ["UNBOUNDED"]\n'
    )
    monkeypatch.chdir(project / cwd)
    assert "".join(Path(f.path).stem for f in audit([project]).findings) == left


def test_patterns_without_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pyproject.toml patterns count from the current folder; elsewhere no folder above matches."""
    (project / "other").mkdir()
    for cwd in (project, project / "other"):
        monkeypatch.chdir(cwd)
        result = audit([project / "shop"], settings=AuditSettings(select=("UNBOUNDED",), exclude=("repo", "deep")))
        assert "".join(Path(f.path).stem for f in result.findings) == "abd"
    absolute = AuditSettings(select=("UNBOUNDED",), exclude=(f"{project}/shop/tests",))
    assert "".join(Path(f.path).stem for f in audit([project], settings=absolute).findings) == "ad"
    assert read_settings(Path("/")) == AuditSettings()


@pytest.mark.parametrize("pattern", ["", ".", "/", "**", "./**/"])
def test_patterns_that_name_nothing_are_refused(pattern: str) -> None:
    """A pattern that would match everything or nothing is an error that names the parameter."""
    refused = "` must have patterns that name files or folders, .*, got '"
    with pytest.raises(ValueError, match=f"`exclude{refused}"):
        AuditSettings(exclude=(pattern,))
    with pytest.raises(ValueError, match=f"`per_file_ignores{refused}"):
        AuditSettings(per_file_ignores={pattern: ("FIXED",)})
