"""The pages "I use ...": one screen each, in one order, with tables that are true. test_examples.py runs their code."""

import re

import pytest

import forbear
from forbear_testkit import ROOT

FOLDER = ROOT / "docs" / "use"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
PARTS = (
    "```shell\npip install ",
    "```python\n",
    "epeated",
    "**Vouch**",
    "**Test**",
    "**What changes.**",
    "\nDoes not work? ",
)
"""The parts of each page, in this order."""


def test_there_is_a_page_for_each_client() -> None:
    """Fifteen clients have a page, and the start page lists them all."""
    assert len(PAGES) == 15
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    part = start.partition("\n## Your client\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- \[.+?\]\(use/(.+)\.md\)", part, re.MULTILINE)
    assert sorted(listed) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_screen(name: str) -> None:
    """It has all parts, in order, within 66 lines."""
    text = PAGES[name]
    places = [text.find(part) for part in PARTS]
    assert -1 not in places, PARTS[places.index(-1)]
    assert places[0] < places[1] < places[2] < places[5] < places[6]
    assert len(text.splitlines()) <= 66


def test_the_last_lines_are_one() -> None:
    """Each page ends alike: what to ask, and where to look."""
    ends = {text.partition("\nDoes not work? ")[2].partition("](../troubleshooting.md)")[0] for text in PAGES.values()}
    assert len(ends) == 1


COMMANDS = {"GET": "k", "DEL": "k", "SADD": "k v", "HSET": "k f v", "INCR": "k", "LPUSH": "k v", "LPOP": "k"}
"""The arguments of the commands of Redis that the page names."""


def columns(name: str) -> tuple[str, str]:
    """Return all cells of what is repeated on a page, and all of what is not."""
    table = PAGES[name].partition("| repeated | not repeated |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return " ".join(row[0] for row in rows), " ".join(row[1] for row in rows)


def test_the_commands_of_redis() -> None:
    """`forbear.explain` says the same of each command that the page names by itself."""
    for repeated, cells in zip((True, False), columns("redis"), strict=True):
        for command in {*re.findall(r"`([A-Z]+)`", cells)} & COMMANDS.keys():
            assert forbear.explain(f"{command} {COMMANDS[command]}").repeatable is repeated, command
    assert forbear.explain("SET k v").repeatable
    assert not forbear.explain("SET k v NX").repeatable


SERVICES = {
    "PutItem": "dynamodb", "DeleteItem": "dynamodb", "PutObject": "s3", "SendMessage": "sqs", "Invoke": "lambda",
    "Publish": "sns", "PutRecord": "kinesis", "PutLogEvents": "logs", "CreateAccessKey": "iam", "CreateSnapshot": "ec2",
}  # fmt: skip
"""The services of the operations of AWS that the page names."""


def test_the_operations_of_aws() -> None:
    """`forbear.explain` says the same of each operation that the page names without its parameters."""
    named = [{*re.findall(r"`([A-Z][A-Za-z]+)`", cells)} & SERVICES.keys() for cells in columns("boto3")]
    assert named[0] | named[1] == SERVICES.keys()
    for repeated, operations in zip((True, False), named, strict=True):
        for operation in operations:
            answer = forbear.explain(f"aws {SERVICES[operation]} {operation}")
            assert answer.repeatable is repeated, operation
