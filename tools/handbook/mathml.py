"""Equations of laws as MathML, which browsers draw by themselves: fractions, powers and roots; any other text stays code."""

from __future__ import annotations

import ast
import html

SIGNS = {ast.Add: "+", ast.Sub: "−", ast.Mult: "·", ast.MatMult: "·", ast.Mod: "mod", ast.FloorDiv: "÷",
         ast.Lt: "&lt;", ast.LtE: "≤", ast.Gt: "&gt;", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠", ast.And: "and", ast.Or: "or"}  # fmt: skip
RANK = {ast.Or: 0, ast.And: 0, ast.Add: 2, ast.Sub: 2, ast.Mult: 3, ast.Mod: 3, ast.FloorDiv: 3, ast.MatMult: 3, ast.Div: 4, ast.Pow: 5}
ATOM = 6


def equation(name: str, text: str) -> str:
    """`name = text` drawn; as code where it is no expression that this draws."""
    try:
        lines = [line(name, statement) for statement in ast.parse(text).body]
    except (SyntaxError, KeyError, NotImplementedError):
        return f"```\n{name} = {text}\n```"
    return "\n".join(lines)


def line(name: str, statement: ast.stmt) -> str:
    """One step of an equation: a name of its own and what it stands for, or the result."""
    match statement:
        case ast.Assign(targets=[target], value=value):
            return f'<math display="block">{drawn(target)}<mo>=</mo>{drawn(value)}</math>'
        case ast.Expr(value=value):
            return f'<math display="block"><mtext>{name}</mtext><mo>=</mo>{drawn(value)}</math>'
    raise NotImplementedError


def drawn(node: ast.expr, outer: int = 0) -> str:
    """One part, in brackets where what stands around it binds more tightly."""
    body, rank = _of(node)
    return f"<mrow><mo>(</mo>{body}<mo>)</mo></mrow>" if rank < outer else f"<mrow>{body}</mrow>"


def _of(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Name(id=name):
            return f"<mtext>{html.escape(name)}</mtext>", ATOM
        case ast.Constant(value=value):
            return f"<mn>{html.escape(str(value))}</mn>", ATOM
        case ast.Attribute(value=owner, attr=name):
            return f"{drawn(owner, ATOM)}<mtext>.{name}</mtext>", ATOM
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"<mfrac>{drawn(left)}{drawn(right)}</mfrac>", RANK[ast.Div]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"<msup>{drawn(left, ATOM)}{drawn(right)}</msup>", RANK[ast.Pow]
        case ast.BinOp(left=left, op=op, right=right):
            rank = RANK[type(op)]
            return f"{drawn(left, rank)}<mo lspace='.25em' rspace='.25em'>{SIGNS[type(op)]}</mo>{drawn(right, rank + 1)}", rank
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"<mo>−</mo>{drawn(inner, RANK[ast.Mult])}", RANK[ast.Add]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return f"<mtext>not&#160;</mtext>{drawn(inner, ATOM)}", 1
        case ast.Compare(left=left, ops=ops, comparators=others):
            links = "".join(
                f"<mo>{SIGNS[type(op)]}</mo>{drawn(part, 2)}" for op, part in zip(ops, others, strict=True) if type(op) in SIGNS
            )
            if not links:
                raise NotImplementedError
            return drawn(left, 2) + links, 1
        case ast.BoolOp(op=op, values=values):
            return f"<mtext>&#160;{SIGNS[type(op)]}&#160;</mtext>".join(drawn(value, 1) for value in values), 0
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"{drawn(body, 1)}<mtext>&#160;if&#160;</mtext>{drawn(test, 1)}<mtext>, else&#160;</mtext>{drawn(other)}", 0
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return f"<msqrt>{drawn(inner)}</msqrt>", ATOM
        case ast.Call(func=function, args=parts, keywords=[]):
            return f"{drawn(function, ATOM)}<mo>(</mo>{'<mo>,</mo>'.join(drawn(part) for part in parts)}<mo>)</mo>", ATOM
        case ast.Tuple(elts=parts):
            return f"<mo>(</mo>{'<mo>,</mo>'.join(drawn(part) for part in parts)}<mo>)</mo>", ATOM
        case ast.Subscript(value=owner, slice=index):
            return f"<msub>{drawn(owner, ATOM)}{drawn(index)}</msub>", ATOM
    raise NotImplementedError
