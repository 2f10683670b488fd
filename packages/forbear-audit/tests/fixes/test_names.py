"""`--fix` and names: the fixed code runs, and what it names is imported where it runs."""

import time
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.fixes import fix

SETTINGS = AuditSettings(select=("NO-JITTER",))
LOOP = """

def load(g):
    for attempt in range(3):
        try:
            return g()
        except OSError:
            if attempt == 2:
                raise
            time.sleep(2 ** attempt)
"""
WAIT = "time.sleep(2 ** attempt)"
JITTER = "time.sleep(2 ** attempt * random.uniform(0.5, 1))"

HEADS = {
    "nowhere": ("import time\n", "import random\nimport time\n"),
    "in another function": (
        "import time\n\n\ndef h():\n    import random\n    return random\n",
        "import random\nimport time\n\n\ndef h():\n    import random\n    return random\n",
    ),
    "in a class": (
        "import time\n\n\nclass C:\n    import random\n",
        "import random\nimport time\n\n\nclass C:\n    import random\n",
    ),
    "for types": (
        "import time\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import random\n",
        "import random\nimport time\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import random\n",
    ),
    "in a block": (
        "import time\n\nif time is None:\n    import random\n",
        "import random\nimport time\n\nif time is None:\n    import random\n",
    ),
    "by another name": ("import random as r\nimport time\n", None),
    "all names of a module": ("from math import *\nimport time\n", ""),
    "one line": ("import sys; import time\n", ""),
    "one of two in a line": (
        "import sys; import string\nimport time\n",
        "import sys; import string\nimport random\nimport time\n",
    ),
    "a submodule": ("import os.path\nimport time\n", "import os.path\nimport random\nimport time\n"),
    "a comment above": (
        "import os\n\n# needed for waits\nimport time\n",
        "import os\n\nimport random\n# needed for waits\nimport time\n",
    ),
    "a heading above": (
        "import os\n# standard library\n\nimport time  # now\n",
        "import os\n# standard library\n\nimport random\nimport time  # now\n",
    ),
    "a comment at the top": ("# needed for waits\nimport time\n", "# needed for waits\nimport time\nimport random\n"),
    "a name of a pattern": ("import time\n\nmatch time:\n    case random:\n        pass\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_a_jitter_finds_its_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixed loop runs with two waits that have jitter; without a certain import the file stays as it is."""
    head, new = HEADS[name]
    file = tmp_path / "shop.py"
    file.write_text(head + LOOP)
    fix(audit([file], settings=SETTINGS), settings=SETTINGS)
    after = file.read_text()
    if new == "":
        assert after == head + LOOP
        return
    jitter = JITTER if new is not None else JITTER.replace("random.", "r.")
    assert after == (new or head) + LOOP.replace(WAIT, jitter)
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    names: dict[str, object] = {}
    exec(compile(after, file, "exec"), names)

    def fail() -> None:
        raise ConnectionResetError

    load = names["load"]
    assert callable(load)
    with pytest.raises(ConnectionResetError):
        load(fail)
    assert [0.5 <= wait / 2**number <= 1 for number, wait in enumerate(waits)] == [True, True]


IN_FUNCTIONS = {
    "before": ("    import random\n", True),
    "in a block": ("    if g:\n        import random\n", False),
    "a parameter": ("    random = g\n", False),
}


@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_a_function_with_an_import_of_its_own(name: str, tmp_path: Path) -> None:
    """An import in the function counts if it surely runs before the wait; else the name is taken."""
    text, fixed = IN_FUNCTIONS[name]
    file = tmp_path / "shop.py"
    before = "import time\n" + LOOP.replace("def load(g):\n", f"def load(g):\n{text}")
    file.write_text(before)
    fix(audit([file], settings=SETTINGS), settings=SETTINGS)
    assert file.read_text() == (before.replace(WAIT, JITTER) if fixed else before)


def test_an_import_that_other_modules_use_stays(tmp_path: Path) -> None:
    """A name that the module no longer needs is still imported: another module may import it from here."""
    waits = tmp_path / "waits.py"
    waits.write_text(
        "from tenacity import retry, stop_after_delay, wait_exponential\n\n\n"
        "@retry(stop=stop_after_delay(9), wait=wait_exponential(max=9))\ndef f():\n    return 1\n"
    )
    (tmp_path / "user.py").write_text("from waits import wait_exponential\n")
    assert len(fix(audit([tmp_path], settings=SETTINGS), settings=SETTINGS)[1]) == 1
    names: dict[str, object] = {}
    exec(compile(waits.read_text(), waits, "exec"), names)
    assert {"wait_exponential", "wait_random_exponential"} <= names.keys()
