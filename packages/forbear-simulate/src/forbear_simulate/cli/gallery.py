"""`forbear simulate gallery`: published studies, with the published figures beside ours."""

import json
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import BadInput, columns, show_table
from forbear_simulate.cli.options import json_option

if TYPE_CHECKING:
    from forbear_simulate.gallery import Comparison, Study


@click.command()
@click.argument("name", required=False)
@json_option
def gallery(name: str | None, as_json: bool) -> None:
    """Compare the figures of published studies with ours.

    Without NAME, all of them run. The exit code is 1 if a figure does not hold.
    """
    from forbear_simulate.gallery import STUDIES, study

    try:
        studies = list(STUDIES.values()) if name is None else [study(name)]
    except ValueError as error:
        message, _, cure = str(error).rpartition("; ")
        raise BadInput(message.replace("`name`", "`NAME`"), cure) from None
    holds = True
    documents: dict[str, dict[str, Any]] = {}
    for each in studies:  # a table is printed as soon as its study is done
        comparisons = each.run()
        holds &= all(comparison.holds for comparison in comparisons)
        if as_json:
            documents[each.name] = _document(each, comparisons)
        else:
            _show(each, comparisons)
    if as_json:
        click.echo(json.dumps({"holds": holds, "studies": documents}))
    click.get_current_context().exit(0 if holds else 1)


def _show(one: "Study", comparisons: "tuple[Comparison, ...]") -> None:
    from forbear_simulate.gallery.studies import show_figure, text_of_error, text_of_published

    click.echo(f"{one.name}: {one.title}\nsource: {one.source}\n")
    table = columns("figure", "published", "ours", "error", "holds")
    for each in comparisons:
        ours = show_figure(each.ours, each.unit)
        table.add_row(
            each.name, text_of_published(each), ours, text_of_error(each), "yes" if each.holds else "[bold red]no[/]"
        )
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
