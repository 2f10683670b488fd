"""gsutil's settings: where its files are, which of them wins, and what is no setting."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.services import cloud_storage
from forbear.services.cloud_storage import boto, gsutil_policy


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without settings, and no settings of this machine."""
    for name in ("BOTO_CONFIG", "BOTO_PATH", "CLOUDSDK_STORAGE_MAX_RETRIES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(boto, "_DEFAULTS", [str(tmp_path / "boto.cfg"), "~/.boto"])
    return tmp_path


def _found() -> tuple[int | None, float]:
    policy = gsutil_policy()
    assert isinstance(policy.backoff, Exponential)
    return policy.limits.attempts, policy.backoff.maximum


def _write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["[Boto]", *lines]), encoding="utf-8")
    return path


def test_without_settings() -> None:
    """The documented defaults: 23 retries, 60 s."""
    assert gsutil_policy() == cloud_storage.gsutil
    assert _found() == (24, 60.0)


def test_settings_of_the_user(home: Path) -> None:
    """Both keys, whatever the case of their names; the rest of the profile stays."""
    _write(home / ".boto", "Num_Retries = 5", "max_retry_delay=32", "proxy = %(nonsense)s")
    policy = gsutil_policy()
    assert policy.limits == Limits(attempts=6, timeout=None)
    assert policy.backoff == Exponential(initial=1, multiplier=2, maximum=32, jitter="full")
    assert policy.replace(limits=cloud_storage.gsutil.limits, backoff=cloud_storage.gsutil.backoff) == (
        cloud_storage.gsutil
    )


def test_one_key_alone(home: Path) -> None:
    """The other one keeps its default; 0 retries are one attempt."""
    _write(home / ".boto", "num_retries = 0")
    assert _found() == (1, 60.0)
    _write(home / ".boto", "max_retry_delay = 1")
    assert _found() == (24, 1.0)


def test_the_user_s_file_goes_before_that_of_the_machine(home: Path) -> None:
    """Key by key."""
    _write(home / "boto.cfg", "num_retries = 3", "max_retry_delay = 10")
    assert _found() == (4, 10.0)
    _write(home / ".boto", "num_retries = 7")
    assert _found() == (8, 10.0)


def test_the_environment_names_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BOTO_PATH is a list, of which later ones win; BOTO_CONFIG is one file, and goes before it."""
    _write(home / ".boto", "num_retries = 1")
    first = _write(home / "first", "num_retries = 2", "max_retry_delay = 20")
    second = _write(home / "second", "num_retries = 3")
    monkeypatch.setenv("BOTO_PATH", f"{first}:{home / 'missing'}::{second}")
    assert _found() == (4, 20.0)
    monkeypatch.setenv("BOTO_PATH", "")
    assert _found() == (24, 60.0)
    monkeypatch.setenv("BOTO_CONFIG", "~/first")
    assert _found() == (3, 20.0)
    monkeypatch.setenv("BOTO_CONFIG", str(home / "missing"))
    assert _found() == (24, 60.0)


def test_other_sections_do_not_count(home: Path) -> None:
    """The keys belong to [Boto], by case."""
    (home / ".boto").write_text("[GSUtil]\nnum_retries = 1\n[boto]\nnum_retries = 2\n", encoding="utf-8")
    assert _found() == (24, 60.0)


@pytest.mark.parametrize(
    ("line", "key", "least", "value"),
    [
        ("num_retries = many", "num_retries", 0, "many"),
        ("num_retries = -1", "num_retries", 0, "-1"),
        ("num_retries = 2.5", "num_retries", 0, "2.5"),
        ("num_retries =", "num_retries", 0, ""),
        ("num_retries = 9999999999", "num_retries", 0, "9999999999"),
        ("max_retry_delay = 0", "max_retry_delay", 1, "0"),
        ("max_retry_delay = 1m", "max_retry_delay", 1, "1m"),
    ],
)
def test_what_is_no_whole_number(home: Path, line: str, key: str, least: int, value: str) -> None:
    """The text names the file, the section, the key, the rule and the value."""
    path = _write(home / ".boto", line)
    with pytest.raises(ValueError, match="must be a whole number") as caught:
        gsutil_policy()
    assert str(caught.value) == f"{path}: [Boto] {key} must be a whole number, {least} or more, got {value!r}"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("num_retries = 5\n  gs_oauth2_refresh_token = secret", "'5' and lines that continue it"),
        ("num_retries =\n  secret", "'' and lines that continue it"),
    ],
)
def test_what_continues_a_value_is_not_quoted(home: Path, line: str, value: str) -> None:
    """It may be a setting that was indented by mistake, and a secret one."""
    path = _write(home / ".boto", line)
    with pytest.raises(ValueError, match="must be a whole number") as caught:
        gsutil_policy()
    assert str(caught.value) == f"{path}: [Boto] num_retries must be a whole number, 0 or more, got {value}"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"secret = 5", ", line 1: a .boto file must have sections of `key = value` lines"),
        (b"[Boto\nsecret = 5", ", line 1: a .boto file must have sections of `key = value` lines"),
        (
            b"[Boto]\nnum_retries = 1\nsecret\nsecret",
            ", line 3: a .boto file must have sections of `key = value` lines",
        ),
        (b"[Boto]\nsecret = \xff\xfe", ": a .boto file must be text in UTF-8"),
    ],
)
def test_what_is_no_settings_file(home: Path, content: bytes, where: str) -> None:
    """The text names the file and what it should be; nothing of its content leaks, not even by way of the context."""
    path = home / ".boto"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a \.boto file must") as caught:
        gsutil_policy()
    assert str(caught.value) == f"{path}{where}"
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_byte_order_mark_is_no_content(home: Path) -> None:
    """Editors on Windows write one."""
    (home / ".boto").write_bytes(b"\xef\xbb\xbf[Boto]\r\nnum_retries = 5\r\n")
    assert _found() == (6, 60.0)


def test_what_cannot_be_read_is_told_from_what_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory is refused, and a path through a file is no path."""
    (home / ".boto").mkdir()
    with pytest.raises(ValueError, match="a file that can be read: ") as caught:
        gsutil_policy()
    assert str(caught.value).startswith(f"{home / '.boto'}: a .boto file must be ")
    monkeypatch.setenv("BOTO_CONFIG", str(_write(home / "file") / "missing"))
    assert _found() == (24, 60.0)


@pytest.mark.parametrize("variable", ["BOTO_CONFIG", "BOTO_PATH"])
def test_the_home_of_nobody(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text names the variable and the path."""
    monkeypatch.setenv(variable, "~no-such-user/boto")
    with pytest.raises(ValueError, match="must name a file") as caught:
        gsutil_policy()
    assert str(caught.value) == (
        f"{variable} must name a file; a `~` in it, the home of a user that exists; got '~no-such-user/boto'"
    )


def test_who_has_no_home_has_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number."""
    monkeypatch.setattr(boto, "_DEFAULTS", ["~no-such-user/boto"])
    assert _found() == (24, 60.0)


@given(st.sampled_from([b"", b"[Boto]\n", b"[Boto]\nnum_retries = "]), st.binary(max_size=40))
def test_nothing_else_is_raised(tmp_path_factory: pytest.TempPathFactory, start: bytes, content: bytes) -> None:
    """Any bytes can stand in a file."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.boto"
    path.write_bytes(start + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOTO_CONFIG", str(path))
        try:
            found = str(_found())
        except ValueError as error:
            found = str(error)
    assert found.startswith(("(", str(path)))


def test_a_device_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of settings is short."""
    monkeypatch.setenv("BOTO_CONFIG", "/dev/zero")
    with pytest.raises(ValueError, match=r"/dev/zero: a \.boto file must have at most 1 MiB"):
        gsutil_policy()
