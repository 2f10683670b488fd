"""`bounds`: the least and the largest value of an expression, such as a wait that is partly random."""

import ast

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import RANDOM
from forbear_audit.reading.scopes import keyword


def bounds(module: Module, expr: ast.expr | None) -> tuple[float, float]:
    """Return the least and the largest value of an expression; a name or a call that cannot be read counts as 1."""
    match expr:
        case ast.BinOp(op=ast.Mult() | ast.Add() as operator, left=left, right=right):
            (low, high), (least, most) = bounds(module, left), bounds(module, right)
            return (low + least, high + most) if isinstance(operator, ast.Add) else (low * least, high * most)
        case ast.Call(func=func, args=args) if RANDOM.search(ast.unparse(func)):  # `random()`, `uniform(1, 3)`
            first = args[0] if args else keyword(expr, "min")
            second = args[1] if len(args) > 1 else keyword(expr, "max")
            low = bounds(module, first)[0] if first is not None else 0
            return low, bounds(module, second)[1] if second is not None else 1
        case ast.Call(func=func, args=args) if ast.unparse(func).endswith("wait_fixed"):
            return bounds(module, args[0] if args else keyword(expr, "wait"))
        case _:
            value = module.constant(expr)
            return (value, value) if isinstance(value, (int, float)) else (1, 1)
