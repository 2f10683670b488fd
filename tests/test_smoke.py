"""The walk over modules by which `make dist` proves an installed wheel, here without building one."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WITHOUT_OTHERS = """
import sys
from pathlib import Path

import forbear
from tools import smoke


class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "forbear"}:
            raise ModuleNotFoundError(f"No module named {name!r}")


sys.meta_path.insert(0, Refusing())
print(smoke.walk("forbear", Path(forbear.__file__).parent))
"""


def test_every_module_that_needs_a_library_names_its_extra() -> None:
    """Without other libraries, each module is imported, or its error names the extra; so do the inner modules."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_OTHERS], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded, needing, bad = ast.literal_eval(done.stdout)
    assert loaded > 100
    assert needing > 5
    assert bad == []
