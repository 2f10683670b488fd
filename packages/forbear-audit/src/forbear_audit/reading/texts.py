"""The texts that expressions stand for, such as URLs and statements of SQL."""

import ast
import re

from forbear_audit.reading.modules import Module

_DEEPEST = 5  # steps from a name to its value


def read_text(module: Module, expr: ast.expr | None, depth: int = 0) -> str | None:
    """Return the text of an expression with "x" for each part that cannot be read, None if it is no text."""
    expr = module.value(expr) if depth < _DEEPEST else None
    if isinstance(expr, ast.Constant) and isinstance(expr.value, str):
        return expr.value
    if isinstance(expr, ast.JoinedStr):
        inner = [v.value if isinstance(v, ast.FormattedValue) else v for v in expr.values]
        return "".join(read_text(module, part, depth + 1) or "x" for part in inner)
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "format":
        text = read_text(module, expr.func.value, depth + 1)
        return None if text is None else re.sub(r"\{\w*\}", "x", text)
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mod):
        text = read_text(module, expr.left, depth + 1)
        return None if text is None else re.sub(r"%(?:\(\w+\))?[sdr]", "x", text)
    match expr:
        case ast.Call(args=[left, right, *_]) if module.name_of(expr.func).endswith("urljoin"):
            base = "x/"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            base = "x"
        case _:
            return None
    return (read_text(module, left, depth + 1) or base) + (read_text(module, right, depth + 1) or "x")
