"""`forbear simulate --gallery`: published studies, with the published figures beside ours."""

import json
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import BadInput, columns, show_table

if TYPE_CHECKING:
    from forbear_simulate.gallery import Comparison, Study

ALL = "all"
"""The name that stands for all studies."""


def show_gallery(name: str, *, as_json: bool) -> bool:
    """Run the study called `name`, or `ALL`, print it as a table or as JSON, and return whether all figures hold.

    A table is printed as soon as its study is done. Raises BadInput for an unknown name.
    """
    from forbear_simulate.gallery import STUDIES, study

    try:
        studies = list(STUDIES.values()) if name == ALL else [study(name)]
    except ValueError as error:
        message, _, cure = str(error).rpartition("; ")
        raise BadInput(message.replace("`name`", "`--gallery`"), cure) from None
    holds = True
    documents: dict[str, dict[str, Any]] = {}
    for each in studies:
        comparisons = each.run()
        holds &= all(comparison.holds for comparison in comparisons)
        if as_json:
            documents[each.name] = _document(each, comparisons)
        else:
            _show(each, comparisons)
    if as_json:
        click.echo(json.dumps({"holds": holds, "studies": documents}))
    return holds


def _show(one: "Study", comparisons: "tuple[Comparison, ...]") -> None:
    from forbear_simulate.gallery.studies import allowed, published_text, shown

    click.echo(f"{one.name}: {one.title}\nsource: {one.source}\n")
    table = columns("figure", "published", "ours", "error", "holds")
    for each in comparisons:
        ours = shown(each.ours, each.unit)
        table.add_row(each.name, published_text(each), ours, allowed(each), "yes" if each.holds else "[bold red]no[/]")
    show_table(table)


def _document(one: "Study", comparisons: "tuple[Comparison, ...]") -> dict[str, Any]:
    """Return a study as a document for JSON; `error` is a share of the published figure, its own unit if that is 0."""
    return {
        "title": one.title,
        "source": one.source,
        "shows": one.shows,
        "published": one.published,
        "model": one.model,
        "figures": [
            {
                "name": each.name,
                "published": each.published,
                "ours": each.ours,
                "error": each.error,
                "unit": each.unit,
                "relation": each.relation,
                "holds": each.holds,
            }
            for each in comparisons
        ],
    }
