"""The files for language models: they list and hold the pages of the start page, and what they say works."""

import re
from pathlib import Path

import httpx

import forbear
from docs.site import llms
from forbear_testkit import ROOT


def test_every_link_is_a_page() -> None:
    """Each page of the list is there; pages that are built are not listed. `make lint` looks that it is up to date."""
    links = re.findall(rf"\]\({re.escape(llms.RAW)}([^)]+)\)", llms.short())
    assert len(links) > 50
    assert [link for link in links if not (ROOT / link).is_file()] == []
    assert {f"docs/use/{path.name}" for path in (ROOT / "docs" / "use").iterdir()} <= set(links)


def test_the_summary_is_true() -> None:
    """Its expressions work."""
    error = ValueError("none")
    with httpx.Client() as client:
        names = {"forbear": forbear, "httpx": httpx, "error": error, "client": client}
        spans = re.findall(r"`(forbear\.\w+\([^`]*\))`", llms.SUMMARY)
        assert len(spans) == 4
        for span in spans:
            eval(span, names)


def test_the_full_text_has_each_page_once(tmp_path: Path) -> None:
    """The pages of clients and the guides are in it, tables of operations and changes are not."""
    assert llms.main([str(tmp_path)]) == 0
    text = (tmp_path / "llms-full.txt").read_text(encoding="utf-8")
    assert (tmp_path / "llms.txt").read_text(encoding="utf-8") == llms.short()
    for page in ("README.md", "docs/guide.md", "docs/use/httpx.md", "docs/cheatsheet.md"):
        assert text.count(f"\n<!-- {page} -->\n") == 1
        assert (ROOT / page).read_text(encoding="utf-8").strip() in text
    assert "<!-- docs/reference/redis.md -->" not in text
    assert "<!-- CHANGELOG.md -->" not in text
