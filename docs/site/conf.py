"""Sphinx reads this file; `make site` runs it.

The source of the site is the whole repository, so that a link which works on a code host works on the site, too. No
module of forbear is imported: `make reference` has made the reference pages from it.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.site.contents import for_readers, with_contents, with_local_links  # noqa: E402 - found by the line above

project = "forbear"
author = "The forbear authors"
copyright = "The forbear authors, Apache-2.0"

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "README.md",
    "examples/**.md",
    "ARCHITECTURE.md",
    "packages/*/ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "benchmarks", "requirements", "mutants"]
myst_heading_anchors = 4
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # commands that go on in the next line are no "console" to Pygments

html_theme = "furo"
html_title = "forbear"
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_static_path = ["static"]
html_css_files = ["forbear.css"]
html_js_files = ["offline.js"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_additional_pages = {"index": "start.html"}
templates_path = ["templates"]


def _read(app: Any, name: str, source: list[str]) -> None:
    """Give the pages that list other pages a table of contents, README links into the site, and all clear titles."""
    source[0] = with_contents(name, with_local_links(name, for_readers(name, source[0])))


def setup(app: Any) -> dict[str, Any]:
    """Connect what this file adds to Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
