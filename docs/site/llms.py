"""Make the two files for language models from the start page and the pages that it lists.

`llms.txt` lists the pages with a line on each, as llmstxt.org describes it. `llms-full.txt` has their text.
`python -m docs.site.llms FOLDER` writes both into a folder; the first one is also committed.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RAW = "https://raw.githubusercontent.com/forbear/forbear/main/"
_START = ROOT / "docs" / "index.md"
_ITEM = re.compile(r"^- \[([^]]+)\]\(([^):#]+\.md)\)(?:: (.+))?$", re.MULTILINE)
_BUILT = "docs/reference/api/"
"""Pages that are built from docstrings: the list has none, the full text has them if they were built."""

_LEFT_OUT = re.compile(r"(?:^|/)(?:CHANGELOG|ARCHITECTURE|CONTRIBUTING|SECURITY)\.md$|^docs/reference/[^/]+$")

SUMMARY = """\
# forbear

> Retries for Python that know what is safe to repeat, how long to hold back and when to stop. No dependencies.

- `forbear.retry(on=forbear.transient, attempts=5, timeout=60)` decorates functions, sync or async. If an error shows a
  request that must not be executed twice, the function is not called again.
- `forbear.install(httpx.Client())` puts retries into clients of httpx, requests, boto3, google-cloud-storage, and of
  SDKs that send by httpx. Each request is judged.
- `safe="POST https://api.example.com/search"` vouches for requests, `repeatable=True` for functions.
- `forbear.explain("POST https://api.example.com/orders")` says whether a request may be repeated, and why, and sends
  nothing.
- On giving up, the original error is raised, with a note that ends in a code, and `forbear.report(error)`.
"""


def parts() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each part of the start page, with the title, the path below the root and the line of each page."""
    for part in _START.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading = part.partition("\n")[0]
        pages = [
            (title, (_START.parent / target).resolve().relative_to(ROOT).as_posix(), line or "")
            for title, target, line in _ITEM.findall(part)
        ]
        if pages:
            yield heading, pages


def short() -> str:
    """Return the text of `llms.txt`."""
    lines = [SUMMARY]
    for heading, pages in parts():
        lines += [f"## {heading}", ""]
        for title, path, about in pages:
            if not path.startswith(_BUILT):
                lines.append(f"- [{title}]({RAW}{path})" + (f": {_without_links(about)}" if about else ""))
        lines.append("")
    return "\n".join(lines)


def _without_links(text: str) -> str:
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def full() -> str:
    """Return the text of `llms-full.txt`: each page once, behind its path.

    Changes, architecture and the tables of operations are left out: `forbear.explain` knows those.
    """
    api = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / _BUILT).glob("*.md"))]
    listed = dict.fromkeys([*(path for _, pages in parts() for _, path, _ in pages), *api])
    paths = [path for path in listed if not _LEFT_OUT.search(path) and (ROOT / path).exists()]
    texts = {path: (ROOT / path).read_text(encoding="utf-8").strip() for path in paths}
    return SUMMARY + "".join(f"\n\n<!-- {path} -->\n\n{text}\n" for path, text in texts.items())


def main(arguments: list[str]) -> int:
    """Write both files into the folder that `arguments` name, and return the exit code."""
    for name, text in (("llms.txt", short()), ("llms-full.txt", full())):
        (Path(arguments[0]) / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
