"""List passages of source and documentation that are not plain English.

Run it as `python tools/plain_english.py src docs README.md`. It checks the docstrings, comments and variable names of
Python files, and the text of Markdown files outside of code. Each finding is one line: `file:line: rule: text`. The
exit code is 1 if a finding breaks a hard rule, otherwise 0. With `--hard` it lists only those that do, as `make lint`
does.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

LONGEST = 30
"""The number of words that a sentence may have."""

OPENING = "docstring opens with a question word"
LONG = f"sentence over {LONGEST} words"
NAME = "variable name"

PHRASES = {
    "reply": r"repl(?:y|ies)",  # as a noun or a verb; the field's word is response
    "comes out": r"c[oa]mes? (?:out|of it)",
    "be it": r"be it",
    "is told": r"(?:is|are|was|were) told",
    "so long": r"(?:for )?so long(?! as)",
    "come what may": r"come what may",
    "nobody": r"nobody|no one",
    "participle as a noun": r"(?:the|what is|what was|what the \w+) (?:asked|found|given|told)\b(?! [a-z])",
}
_PHRASES = {rule: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for rule, pattern in PHRASES.items()}

HARD = frozenset({OPENING, "reply", "comes out", "be it", "is told", "so long", "come what may"})
"""The rules that must hold. The others list candidates, which a reader has to judge; in Markdown, `LONG` must hold."""

_QUESTION = re.compile(r"(?:What|Whether|How|Where)\b")
_NAMES = frozenset({"asked", "found", "given", "told"})
_DEFINITION = re.compile(r"\[[^]]+\]: \S+$")  # of a link
_END = re.compile(r"(?<=[.!?])[)*_\"']*\s+(?=\S)")
_CODE = re.compile(r"``[^`]+``|`[^`]+`|https?://\S+|(?<=\])\([^)]*\)")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|etc)\.")


class Passage(NamedTuple):
    """A piece of prose: a docstring, a comment, a paragraph, a list item or a cell of a table."""

    line: int
    text: str
    is_docstring: bool = False


class Finding(NamedTuple):
    """One place that breaks one rule."""

    path: Path
    line: int
    rule: str
    text: str

    @property
    def is_hard(self) -> bool:
        """Return whether this must be mended."""
        return self.rule in HARD or (self.rule == LONG and self.path.suffix == ".md")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def find(paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield the findings in the Python and Markdown files among `paths`, and in those below the folders among them."""
    for path in paths:
        if path.is_dir():
            yield from find(sorted(file for file in path.rglob("*") if file.suffix in (".py", ".md")))
        elif path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            yield from _judge(path, [*docstrings(text), *comments(text)])
            yield from (Finding(path, line, NAME, name) for line, name in names(text))
        elif path.suffix == ".md":
            yield from _judge(path, paragraphs(path.read_text(encoding="utf-8")))


@lru_cache(1)  # for the two functions that ask for the nodes of the same file
def _nodes(source: str) -> list[ast.AST]:
    return [*ast.walk(ast.parse(source))]


def docstrings(source: str) -> Iterator[Passage]:
    """Yield the docstrings of a Python file, and the strings that stand below variables, one paragraph at a time."""
    for node in _nodes(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            is_first, line = True, node.lineno
            for paragraph in re.split(r"(\n\s*\n)", node.value.value):
                if paragraph.strip():
                    yield from _items(line, paragraph, is_docstring=is_first)
                    is_first = False
                line += paragraph.count("\n")


def comments(source: str) -> Iterator[Passage]:
    """Yield the comments of a Python file; comments on lines that follow each other are one passage."""
    start, last, lines = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(?:noqa|type:|pyright|pragma|fmt:|!)", token.string):
            continue
        line = token.start[0]
        stands_alone = token.line.lstrip().startswith("#")
        if lines and not (stands_alone and line == last + 1):
            yield Passage(start, " ".join(lines))
            lines = []
        start = start if lines else line
        lines.append(re.split(r"#\s*(?:noqa|type:|pyright)", token.string.lstrip("# "))[0])
        last = line
    if lines:
        yield Passage(start, " ".join(lines))


def names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the variables and parameters of a Python file that are called by a participle, and their lines."""
    for node in _nodes(source):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in _NAMES:
            yield node.lineno, node.arg


def paragraphs(text: str) -> Iterator[Passage]:
    """Yield the paragraphs, headings, list items and table cells of a Markdown file, without blocks of code."""
    start, lines, is_code = 0, list[str](), False
    for line, content in enumerate([*text.splitlines(), ""], 1):
        is_fence = content.lstrip().startswith("```")
        is_code ^= is_fence
        ends = (
            is_fence
            or is_code
            or not content.strip()
            or content.startswith(("#", "    ", "<!--"))
            or content.lstrip().startswith("|")
            or _DEFINITION.match(content)
        )
        if lines and (ends or re.match(r"\s*(?:[-*]|\d+\.) ", content)):
            yield Passage(start, " ".join(lines))
            lines = []
        if content.lstrip().startswith("|"):
            yield from (Passage(line, cell) for cell in re.split(r"(?<!\\)\|", content) if re.search(r"\w", cell))
        elif content.startswith("#"):
            yield Passage(line, content.lstrip("# "))
        elif not ends:
            start = start if lines else line
            lines.append(content.strip())


def _items(line: int, paragraph: str, *, is_docstring: bool) -> Iterator[Passage]:
    """Yield the list items of a paragraph one by one, or the paragraph where it has none."""
    for item in re.split(r"\n(?=\s*[-*] )", paragraph):
        yield Passage(line, " ".join(item.split()), is_docstring)
        line += item.count("\n") + 1
        is_docstring = False


def _judge(path: Path, passages: Iterable[Passage]) -> Iterator[Finding]:
    """Yield a finding for each rule that a passage breaks."""
    for passage in passages:
        prose = _CODE.sub("x", passage.text)
        if passage.is_docstring and _QUESTION.match(passage.text):
            yield Finding(path, passage.line, OPENING, _short(passage.text))
        for rule, pattern in _PHRASES.items():
            for match in pattern.finditer(prose):
                yield Finding(path, passage.line, rule, _short(prose[max(match.start() - 40, 0) :]))
        for sentence in _END.split(_ABBREVIATIONS.sub(r"\1", prose)):
            if len(re.findall(r"[\w'-]*\w[\w'-]*", sentence)) > LONGEST:
                yield Finding(path, passage.line, LONG, _short(sentence))


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def main(arguments: list[str]) -> int:
    """Print the findings in the files and folders named, with `--hard` only the hard ones; return the exit code."""
    only_hard = "--hard" in arguments
    findings = list(find(Path(argument) for argument in arguments if argument != "--hard"))
    for finding in findings:
        if finding.is_hard or not only_hard:
            sys.stdout.write(f"{finding}\n")
    return 1 if any(finding.is_hard for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
