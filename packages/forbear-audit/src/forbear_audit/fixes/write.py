"""`rewritten`: the bytes of a file after edits. libcst keeps all that they do not touch: encoding, lines, comments."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from forbear_audit.fixes.edits import Edit

Span = tuple[int, int, int, int]
"""The first line and column of a node and its last ones; lines count from 1, columns from 0 in characters."""

_KINDS = (cst.BaseExpression, cst.Raise, cst.ImportFrom, cst.Import)
_IMPORTS = ("import before", "import after")
_LOOSE = (cst.IfExp, cst.Lambda, cst.NamedExpr, cst.Yield, cst.Await, cst.BooleanOperation, cst.Comparison)


def rewritten(data: bytes, edits: Mapping[Span, Sequence[Edit]]) -> bytes | None:
    """Return the bytes of a module after edits at the nodes with these spans.

    None if libcst cannot parse the module, a span is none of a node, or an import cannot be written.
    """
    try:
        wrapper = MetadataWrapper(cst.parse_module(data), unsafe_skip_copy=True)
    except (cst.ParserSyntaxError, UnicodeDecodeError, RecursionError):
        return None
    left = dict(edits)
    chosen: dict[cst.CSTNode, Sequence[Edit]] = {}
    for node, place in wrapper.resolve(PositionProvider).items():
        span = (place.start.line, place.start.column, place.end.line, place.end.column)
        if span in left and isinstance(node, _KINDS):
            chosen[node] = left.pop(span)
    if left:
        return None
    first = wrapper.module.body[0] if wrapper.module.header and wrapper.module.header[-1].comment else None
    writer = _EditWriter(chosen, first)
    new = wrapper.module.visit(writer)
    wanted = sum(edit.kind in _IMPORTS for each in edits.values() for edit in each)
    if writer.imports != wanted:
        return None
    # libcst drops a carriage return at the very end.
    return new.bytes.rstrip(b"\r") + data[len(data.rstrip(b"\r")) :]


class _EditWriter(cst.CSTTransformer):
    """Makes the edits of each node when it leaves it, so that edits further inside are kept."""

    def __init__(self, edits: Mapping[cst.CSTNode, Sequence[Edit]], commented: cst.CSTNode | None) -> None:
        super().__init__()
        self._edits = edits
        self._commented = commented  # the first statement, if a comment of the head of the file stands right above it
        self.imports = 0

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        result: Any = updated_node
        for edit in self._edits.get(original_node, ()):
            if edit.kind not in _IMPORTS:
                result = _apply_edit(result, edit)
        if isinstance(original_node, cst.SimpleStatementLine) and len(original_node.body) == 1:
            edits = self._edits.get(original_node.body[0], ())
            for edit in [edit for edit in edits if edit.kind in _IMPORTS]:
                self.imports += 1
                return cst.FlattenSentinel(_with_import(result, edit, original_node is self._commented))
        return result


def _with_import(line: cst.SimpleStatementLine, edit: Edit, commented: bool) -> list[cst.SimpleStatementLine]:
    """Return the lines of an import and of the new one beside it; a comment right above the import stays with it."""
    new = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(edit.name))])])
    if edit.kind == "import after" or commented:
        return [line, new]
    above = [*line.leading_lines]
    start = next((at for at in range(len(above), 0, -1) if above[at - 1].comment is None), 0)
    return [new.with_changes(leading_lines=above[:start]), line.with_changes(leading_lines=above[start:])]


def _apply_edit(node: Any, edit: Edit) -> Any:
    match edit.kind:
        case "pass":
            return _with_keyword(node, edit.name, edit.value)
        case "drop":
            return _remove_keyword(node, edit.name)
        case "rename":
            name = cst.Name(edit.name)
            return (
                node.with_changes(attr=name) if isinstance(node, cst.Attribute) else node.with_changes(value=edit.name)
            )
        case "call":
            return cst.Call(node, [_keyword(edit.name, edit.value)])
        case "|":
            return cst.BinaryOperation(_closed(node), cst.BitOr(), cst.parse_expression(edit.name))
        case "*":
            left = _closed(node, (cst.BinaryOperation,))
            return cst.BinaryOperation(left, cst.Multiply(), cst.parse_expression(edit.name))
        case "cap":
            return cst.Call(cst.Name("min"), [cst.Arg(cst.parse_expression(edit.name)), cst.Arg(node)])
        case "await":
            return cst.Await(node.with_changes(func=cst.parse_expression(edit.name), lpar=[], rpar=[]))
        case "from":
            return node.with_changes(cause=cst.From(cst.Name(edit.name), cst.SimpleWhitespace(" ")))
        case "import too":
            return _with_import_of(node, edit)
        case _:
            raise TypeError(f"no edit of an expression: {edit}")


def _closed(node: Any, more: tuple[type, ...] = ()) -> Any:
    """Return an expression that another operator may follow: in parentheses where it binds less tightly."""
    binds = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide, cst.Power))
    loose = isinstance(node, (*_LOOSE, *more)) and not binds
    if not loose or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _keyword(name: str, text: str) -> cst.Arg:
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.parse_expression(text), keyword=cst.Name(name), equal=tight)


def _with_keyword(call: cst.Call, name: str, text: str) -> cst.Call:
    """Return a call that passes a keyword: with a new value if it has the keyword, else after its other arguments."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return call.with_changes(
                args=[a.with_changes(value=cst.parse_expression(text)) if a is arg else a for a in call.args]
            )
    if not call.args:
        return call.with_changes(args=[_keyword(name, text)])
    last = call.args[-1]
    added = _keyword(name, text).with_changes(whitespace_after_arg=last.whitespace_after_arg)
    args = [*call.args[:-1], last.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))]
    return call.with_changes(args=_insert_item(args, added, len(args), call.whitespace_before_args))


def _remove_keyword(call: cst.Call, name: str) -> cst.Call:
    """Return a call without a keyword; the argument before it takes over how the list ends."""
    args = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != name]
    if args and len(args) < len(call.args) and call.args[-1] not in args:
        last = call.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return (
        call.with_changes(args=args)
        if args
        else call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    )


def _with_import_of(statement: cst.ImportFrom, edit: Edit) -> cst.ImportFrom:
    """Return a `from` import with one more name, in its place by the alphabet if the others are."""
    names = [*cast("Sequence[cst.ImportAlias]", statement.names)]
    new = cst.ImportAlias(cst.Name(edit.name))
    listed = [str(alias.evaluated_name) for alias in names]
    index = len(names)
    if listed == sorted(listed, key=_order):
        index = next((at for at, name in enumerate(listed) if _order(name) > _order(edit.name)), index)
    opening = statement.lpar.whitespace_after if isinstance(statement.lpar, cst.LeftParen) else cst.SimpleWhitespace("")
    return statement.with_changes(names=_insert_item(names, new, index, opening))


def _order(name: str) -> tuple[int, str]:
    """Return the place of a name in a sorted import: constants, classes, then the rest."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name.casefold()


def _insert_item(items: Sequence[Any], new: Any, index: int, opening: cst.BaseParenthesizableWhitespace) -> list[Any]:
    """Return items with a new one, separated as they are; `opening` is the white space before the first of them."""
    between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if isinstance(opening, cst.ParenthesizedWhitespace):
        plain = opening.with_changes(first_line=cst.TrailingWhitespace(newline=cst.Newline()), empty_lines=[])
        between = cst.Comma(whitespace_after=plain)
    first = items[0].comma
    if len(items) > 1 and isinstance(first, cst.Comma) and isinstance(first.whitespace_after, cst.SimpleWhitespace):
        between = first
    result = [*items[:index], new, *items[index:]]
    closing = items[-1].comma
    if index < len(items):
        result[index] = new.with_changes(comma=between)
        return result
    inner = between
    if isinstance(closing, cst.Comma) and isinstance(closing.whitespace_after, cst.ParenthesizedWhitespace):
        after = closing.whitespace_after  # its comment belongs to the item before
        if isinstance(between.whitespace_after, cst.ParenthesizedWhitespace):
            inner = between.with_changes(
                whitespace_after=between.whitespace_after.with_changes(first_line=after.first_line)
            )
            bare = cst.TrailingWhitespace(newline=cst.Newline())
            closing = closing.with_changes(whitespace_after=after.with_changes(first_line=bare))
    result[-2] = result[-2].with_changes(comma=inner)
    result[-1] = new.with_changes(comma=closing)
    return result
