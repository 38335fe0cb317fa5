"""Translate the kernels, which are plain Python functions of arrays and integers, into C.

    generate_kernels.py [--check]

Run this program after changing a kernel. It writes `native/kernels.c` and the digest of that file, with which
the package checks that a compiled library belongs to its sources. With --check nothing is written; the exit
code is 0 if both files are up to date.

A kernel may only use what this translator supports: integers of 64 bits that wrap, booleans, arrays of one to
three dimensions, tuples as results, `if`, `while`, `for` over `range`, calls of other kernels and of the
primitives in `penstock.records.kernels.compiled`. Anything else is reported as an error with kernel and line.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import inspect
import os
import sys
import textwrap
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "penstock"
C_FILE = ROOT / "native" / "kernels.c"
HEADERS = ("kernels.h", "rows.h", "keys.h", "row_writer.h", "avro_rows.h", "module.h")
DIGEST_FILE = SOURCE / "records" / "source_digest.py"

os.environ["PENSTOCK_PURE_PYTHON"] = "1"
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402

from penstock.records.kernels import compiled  # noqa: E402

INT, BOOL, NONE = "int64_t", "bool", "void"
ARRAYS = {1: "bytes_t", 4: "int32s_t", 8: "ints_t"}
LISTS = {"bytes_t": "bytes_list_t", "int32s_t": "int32s_list_t"}

# A primitive and how C spells it: {0} is the first argument.
PRIMITIVES = {
    "byte_at": "(int64_t){0}.at[CHECKED({1}, COUNT({0}))]",
    "int_at": "(int64_t){0}.at[CHECKED({1}, COUNT({0}))]",
    "word_at": "load_word({0}, {1})",
    "first_marked": "first_marked({0})",
    "put_byte": "{0}.at[CHECKED({1}, COUNT({0}))] = (uint8_t)({2})",
    "put_int": "{0}.at[CHECKED({1}, COUNT({0}))] = (int32_t)({2})",
    "copy_bytes": "copy_bytes({0}, {1}, {2}, {3}, {4})",
    "copy_word": "copy_word({0}, {1}, {2}, {3})",
    "copy_sixteen": "copy_sixteen({0}, {1}, {2}, {3})",
    "wrap64": "({0})",
    "double_bits": "double_bits({0}, {1})",
    "high_product": "high_product({0}, {1})",
    "leading_zeros": "leading_zeros({0})",
    "widened": "widened({0})",
    "pointer": "{0}",
    "bytes_of": "{0}.at[CHECKED({1}, {0}.count)]",
    "ints_of": "{0}.at[CHECKED({1}, {0}.count)]",
}
WRITING = {"put_byte", "put_int", "copy_bytes", "copy_word", "copy_sixteen"}

BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Untranslatable(Exception):
    """A kernel uses a Python construct that the translator does not support."""


@dataclass
class Kernel:
    """A parsed kernel: its syntax tree, parameter and result types, and the arrays that it writes to."""

    name: str
    function: Callable[..., Any]
    tree: ast.FunctionDef
    parameters: list[tuple[str, str]]
    result: str
    size: int
    written: set[int] = field(default_factory=set)


def kernel_modules() -> list[str]:
    """Return the names of the modules that have kernels."""
    return [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        if "\n@kernel\n" in path.read_text(encoding="utf-8")
    ]


def type_of(annotation: Any) -> str:
    """Return the C type for an annotation."""
    if annotation is int:
        return INT
    if annotation is bool:
        return BOOL
    if annotation in (None, type(None)):
        return NONE
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return f"tuple{len(typing.get_args(annotation))}_t"
    if origin is np.ndarray:
        return ARRAYS[np.dtype(typing.get_args(typing.get_args(annotation)[1])[0]).itemsize]
    if origin in (Sequence, list, tuple):
        return LISTS[type_of(typing.get_args(annotation)[0])]
    raise Untranslatable(f"no C type for {annotation}")


def read_kernel(function: Callable[..., Any]) -> Kernel:
    """Parse a kernel function and its type annotations."""
    source = textwrap.dedent(inspect.getsource(function))
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.FunctionDef)
    hints = typing.get_type_hints(function)
    result = type_of(hints.pop("return"))
    parameters = [(argument.arg, type_of(hints[argument.arg])) for argument in tree.args.args]
    size = sum(1 for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return Kernel(compiled.library_name(function), function, tree, parameters, result, size)


class Constants:
    """The constant arrays that kernels read from their modules, translated to static tables in C."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self.lines: list[str] = []
        self._kept: list[Any] = []

    def name(self, array: np.ndarray[Any, Any]) -> tuple[str, str]:
        """Return (C expression, C type) for a constant array; define its table on first use."""
        kind = ARRAYS[array.dtype.itemsize]
        name = self._names.get(id(array))
        if name is None:
            self._kept.append(array)
            name = self._names[id(array)] = f"table_{len(self._names)}"
            element = {"bytes_t": "uint8_t", "int32s_t": "int32_t", "ints_t": "int64_t"}[kind]
            numbers = ", ".join(str(number) for number in array.reshape(-1).tolist())
            body = "\n".join(textwrap.wrap(numbers, 110, initial_indent="    ", subsequent_indent="    "))
            self.lines += [f"static const {element} {name}_data[] = {{", body, "};"]
            self.lines.append(
                f"static const {kind} {name} = {{({element} *){name}_data, {{{array.size}, 1, 1}}}};"
            )
        return name, kind


class Body:
    """The translator of one kernel's body from Python to C."""

    def __init__(self, kernel: Kernel, known: dict[int, Kernel], constants: Constants) -> None:
        self._kernel = kernel
        self._globals = kernel.function.__globals__
        self._known = known
        self._constants = constants
        self._types: dict[str, str] = dict(kernel.parameters)
        self._origins: dict[str, set[int]] = {
            name: {index} for index, (name, _) in enumerate(kernel.parameters)
        }
        self._temporaries = 0
        self.lines: list[str] = []
        self._depth = 1

    def write(self) -> list[str]:
        """Return the lines of the C function's body."""
        for statement in self._kernel.tree.body:
            self._statement(statement)
        parameters = {name for name, _ in self._kernel.parameters}
        declared = [
            f"    {kind} {name}{'' if kind.endswith('s_t') else ' = 0'};"
            for name, kind in self._types.items()
            if name not in parameters and name != "_"
        ]
        return declared + self.lines

    def _fail(self, node: ast.AST, what: str) -> Untranslatable:
        code = self._kernel.function.__code__
        line = code.co_firstlineno + getattr(node, "lineno", 1) - 1
        return Untranslatable(f"{code.co_filename}:{line}: {self._kernel.tree.name}: {what}")

    def _emit(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    # --- statements ---

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):  # a docstring is one
                self._emit(f"{self._call(node.value)[0]};")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AugAssign):
            whole = ast.BinOp(left=as_value(node.target), op=node.op, right=node.value)
            self._assign(node.target, ast.copy_location(whole, node))
        elif isinstance(node, ast.Return):
            self._return(node)
        elif isinstance(node, ast.If):
            self._emit(f"if ({self._truth(node.test)}) {{")
            self._block(node.body)
            if node.orelse:
                self._emit("} else {")
                self._block(node.orelse)
            self._emit("}")
        elif isinstance(node, ast.While) and not node.orelse:
            self._emit(f"while ({self._truth(node.test)}) {{")
            self._block(node.body)
            self._emit("}")
        elif isinstance(node, ast.For) and not node.orelse:
            self._for(node)
        elif isinstance(node, ast.Break):
            self._emit("break;")
        elif isinstance(node, ast.Continue):
            self._emit("continue;")
        else:
            raise self._fail(node, f"no translation for {type(node).__name__}")

    def _block(self, body: list[ast.stmt]) -> None:
        self._depth += 1
        for statement in body:
            self._statement(statement)
        self._depth -= 1

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def _for(self, node: ast.For) -> None:
        called = node.iter
        if not (
            isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "range"
        ):
            raise self._fail(node, "a loop goes over a range")
        if not isinstance(node.target, ast.Name):
            raise self._fail(node, "the variable of a loop is a name")
        bounds = [self._value(argument) for argument in called.args]
        first, last, step = (
            ("0", bounds[0], "1") if len(bounds) == 1 else (bounds[0], bounds[1], (*bounds, "1")[2])
        )
        index, end = self._temporary(), self._temporary()
        self._types.setdefault(node.target.id, INT)
        relation = ">" if step.startswith(("-", "(-")) else "<"
        self._emit(
            f"for (int64_t {index} = {first}, {end} = {last}; {index} {relation} {end}; {index} += {step}) {{"
        )
        self._depth += 1
        if node.target.id != "_":
            self._emit(f"{node.target.id} = {index};")
        self._depth -= 1
        self._block(node.body)
        self._emit("}")

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self._emit("return;")
            return
        if self._kernel.result.startswith("tuple"):
            self._emit(f"return {self._tuple(node.value)[0]};")
        else:
            self._emit(f"return {self._value(node.value)};")

    def _tuple(self, node: ast.expr) -> tuple[str, int]:
        """Return (C expression of a tuple struct, number of its elements) for a tuple in Python."""
        if isinstance(node, ast.Tuple):
            parts = ", ".join(self._value(element) for element in node.elts)
            return f"(tuple{len(node.elts)}_t){{{{{parts}}}}}", len(node.elts)
        if isinstance(node, ast.Name) and isinstance(self._globals.get(node.id), tuple):
            numbers = self._globals[node.id]
            return f"(tuple{len(numbers)}_t){{{{{', '.join(map(number_text, numbers))}}}}}", len(numbers)
        text, kind, _ = self._expression(node)
        if not kind.startswith("tuple"):
            raise self._fail(node, "a tuple is needed")
        return text, int(kind[5:-2])

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            self._unpack(target, value)
            return
        text, kind, origins = self._expression(value)
        self._store(target, text, kind, origins)

    def _unpack(self, target: ast.Tuple, value: ast.expr) -> None:
        if isinstance(value, ast.Tuple):
            kept: list[tuple[str, str, set[int]]] = []
            for element in value.elts:
                text, kind, origins = self._expression(element)
                name = self._temporary()
                kept.append((name, kind, origins))
                self._emit(f"const {kind} {name} = {text};")
            for each, (name, kind, origins) in zip(target.elts, kept, strict=True):
                self._store(each, name, kind, origins)
            return
        text, size = self._tuple(value)
        name = self._temporary()
        self._emit(f"const tuple{size}_t {name} = {text};")
        if size != len(target.elts):
            raise self._fail(target, f"{size} results for {len(target.elts)} names")
        for index, each in enumerate(target.elts):
            self._store(each, f"{name}.part[{index}]", INT, set())

    def _store(self, target: ast.expr, text: str, kind: str, origins: set[int]) -> None:
        if isinstance(target, ast.Subscript):
            place, element, written = self._element(target)
            self._kernel.written |= written
            self._emit(f"{place} = ({element})({text});")
        elif isinstance(target, ast.Name) and target.id == "_":
            self._emit(f"(void)({text});")
        elif isinstance(target, ast.Name):
            before = self._types.setdefault(target.id, INT if kind == BOOL else kind)
            if before != kind and {before, kind} != {INT, BOOL}:
                raise self._fail(target, f"{target.id} is {before} and {kind}")
            self._origins.setdefault(target.id, set()).update(origins)
            self._emit(f"{target.id} = {text};")
        else:
            raise self._fail(target, "assign to names and elements")

    # --- expressions: (text, type, the array arguments that it may be) ---

    def _value(self, node: ast.expr) -> str:
        text, kind, _ = self._expression(node)
        if kind not in (INT, BOOL):
            raise self._fail(node, f"a number is needed, not {kind}")
        return text

    def _truth(self, node: ast.expr) -> str:
        text, kind, _ = self._expression(node)
        if kind not in (INT, BOOL):
            raise self._fail(node, f"a number or a truth is needed, not {kind}")
        return text if kind == BOOL else f"({text} != 0)"

    def _expression(self, node: ast.expr) -> tuple[str, str, set[int]]:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return number_text(node.value), BOOL if isinstance(node.value, bool) else INT, set()
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and is_constant(node):
            return number_text(eval(ast.unparse(node))), INT, set()
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left), self._value(node.right)
            if isinstance(node.op, ast.FloorDiv):
                return f"floor_quotient({left}, {right})", INT, set()
            if isinstance(node.op, ast.Mod):
                return f"floor_remainder({left}, {right})", INT, set()
            return f"({left} {BINARY[type(node.op)]} {right})", INT, set()
        if isinstance(node, ast.UnaryOp):
            sign = {ast.Not: "!", ast.USub: "-", ast.Invert: "~", ast.UAdd: "+"}[type(node.op)]
            return f"({sign}{self._value(node.operand)})", BOOL if sign == "!" else INT, set()
        if isinstance(node, ast.BoolOp):
            word = " && " if isinstance(node.op, ast.And) else " || "
            return f"({word.join(self._truth(each) for each in node.values)})", BOOL, set()
        if isinstance(node, ast.Compare):
            return self._comparison(node), BOOL, set()
        if isinstance(node, ast.IfExp):
            test, one, other = (
                self._value(node.test),
                self._expression(node.body),
                self._expression(node.orelse),
            )
            return f"({test} ? {one[0]} : {other[0]})", one[1], one[2] | other[2]
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
            text, _ = self._tuple(node.value)
            return f"{text}.part[{self._value(node.slice)}]", INT, set()
        if isinstance(node, ast.Subscript):
            place, _, _ = self._element(node)
            return f"(int64_t){place}", INT, set()
        if isinstance(node, ast.Attribute) and node.attr == "size":
            text, _, _ = self._expression(node.value)
            return f"COUNT({text})", INT, set()
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._fail(node, f"no translation for {ast.unparse(node)}")

    def _name(self, node: ast.Name) -> tuple[str, str, set[int]]:
        if node.id in self._types:
            return node.id, self._types[node.id], self._origins.get(node.id, set())
        value = self._globals.get(node.id)
        if isinstance(value, (int, np.integer)):
            return number_text(int(value)), INT, set()
        if isinstance(value, np.ndarray):
            return (*self._constants.name(value), set())
        raise self._fail(node, f"{node.id} is not known here")

    def _element(self, node: ast.Subscript) -> tuple[str, str, set[int]]:
        array, kind, origins = self._expression(node.value)
        if isinstance(node.slice, ast.Tuple):
            indices = [self._value(index) for index in node.slice.elts]
            place = indices[0]
            for axis, index in enumerate(indices[1:], 1):
                place = f"({place}) * {array}.size[{axis}] + {index}"
        else:
            place = self._value(node.slice)
        element = {"bytes_t": "uint8_t", "int32s_t": "int32_t", "ints_t": "int64_t"}[kind]
        return f"{array}.at[CHECKED({place}, COUNT({array}))]", element, origins

    def _comparison(self, node: ast.Compare) -> str:
        parts = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, (ast.In, ast.NotIn)):
                if not isinstance(right, ast.Tuple):
                    raise self._fail(right, "`in` asks a tuple")
                value = self._value(left)
                one_of = " || ".join(f"{value} == {self._value(each)}" for each in right.elts)
                parts.append(f"(!({one_of}))" if isinstance(operator, ast.NotIn) else f"({one_of})")
            else:
                parts.append(f"({self._value(left)} {COMPARISONS[type(operator)]} {self._value(right)})")
            left = right
        return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"

    def _call(self, node: ast.expr) -> tuple[str, str, set[int]]:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)) or node.keywords:
            raise self._fail(node, f"no translation for {ast.unparse(node)}")
        name = node.func.id
        arguments = [self._expression(argument) for argument in node.args]
        texts = [text for text, _, _ in arguments]
        if name in ("int", "bool"):
            return (f"({texts[0]})", INT, set()) if name == "int" else (f"(({texts[0]}) != 0)", BOOL, set())
        if name == "len":
            return f"{texts[0]}.size[0]", INT, set()
        if name in ("min", "max"):
            return f"{name}_of({', '.join(texts)})", INT, set()
        called = self._globals.get(name)
        if name in PRIMITIVES and getattr(called, "__module__", "") == compiled.__name__:
            if name in WRITING:
                self._kernel.written |= arguments[0][2]
            kind = {"bytes_of": "bytes_t", "ints_of": "int32s_t"}.get(name, INT)
            if name == "pointer":
                return f"flat_{arguments[0][1]}({texts[0]})", arguments[0][1], arguments[0][2]
            return PRIMITIVES[name].format(*texts), kind, set()
        kernel = self._known.get(id(called))
        if kernel is None:
            raise self._fail(node, f"{name} is no kernel")
        for index in kernel.written:
            self._kernel.written |= arguments[index][2]
        for (parameter, kind), (_, given, _) in zip(kernel.parameters, arguments, strict=True):
            if kind != given and {kind, given} != {INT, BOOL}:
                raise self._fail(node, f"{name}: {parameter} is {kind}, not {given}")
        return f"{kernel.name}({', '.join(texts)})", kernel.result, set()


def as_value(target: ast.expr) -> ast.expr:
    """Return the expression that reads the variable or element that an assignment writes."""
    return typing.cast("ast.expr", ast.parse(ast.unparse(target), mode="eval").body)


def is_constant(node: ast.expr) -> bool:
    """Return True if an expression contains only numbers and operators."""
    return all(
        isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
        for part in ast.walk(node)
    )


def number_text(number: int) -> str:
    """Return an integer as a C literal, wrapped to 64 signed bits."""
    number = (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)
    if number == -(1 << 63):
        return "INT64_MIN"
    return f"{number}LL" if number >= 0 else f"({number}LL)"


def in_order(kernels: dict[int, Kernel]) -> list[Kernel]:
    """Return the kernels in an order in which each comes after the kernels that it calls."""
    found: list[Kernel] = []
    marks: set[str] = set()

    def visit(kernel: Kernel) -> None:
        if kernel.name in marks:
            return
        marks.add(kernel.name)
        for node in ast.walk(kernel.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = kernels.get(id(kernel.function.__globals__.get(node.func.id)))
                if called is not None:
                    visit(called)
        found.append(kernel)

    for kernel in kernels.values():
        visit(kernel)
    return found


def head(kernel: Kernel) -> str:
    """Return the C function's declaration, up to its body."""
    parameters = ", ".join(f"{kind} {name}" for name, kind in kernel.parameters) or "void"
    return f"static {'inline ' if kernel.size < 40 else ''}{kernel.result} {kernel.name}({parameters})"


def wrapper(kernel: Kernel) -> list[str]:
    """Return the C function that Python calls, which runs the kernel without holding the GIL."""
    count = len(kernel.parameters)
    lines = [
        f"static PyObject *py_{kernel.name}(PyObject *self, PyObject *const *given, Py_ssize_t count) {{"
    ]
    lines.append(f'    call_t call; begin_call(&call, "{kernel.tree.name}", given, count, {count});')
    for index, (_, kind) in enumerate(kernel.parameters):
        writes = f", {int(index in kernel.written)}" if kind in ARRAYS.values() else ""
        lines.append(f"    const {kind} argument{index} = take_{kind}(&call, {index}{writes});")
    arguments = ", ".join(f"argument{index}" for index in range(count))
    result = kernel.result
    if result != NONE:
        zero = "{{0}}" if result.startswith("tuple") else "0"
        lines.append(f"    {result} result = {zero};")
    lines += [
        "    if (!call.failed) {",
        "        Py_BEGIN_ALLOW_THREADS",
        f"        {'' if result == NONE else 'result = '}{kernel.name}({arguments});",
        "        Py_END_ALLOW_THREADS",
        "    }",
        "    if (end_call(&call)) return NULL;",
    ]
    if result == NONE:
        lines.append("    Py_RETURN_NONE;")
    elif result == BOOL:
        lines.append("    return PyBool_FromLong(result);")
    elif result == INT:
        lines.append("    return PyLong_FromLongLong(result);")
    else:
        lines.append(f"    return tuple_of(result.part, {result[5:-2]});")
    return [*lines, "}", ""]


def library_source() -> tuple[str, str]:
    """Return the C file and its digest."""
    for name in kernel_modules():
        importlib.import_module(name)
    kernels = {id(function): read_kernel(function) for function in compiled.KERNELS}
    constants = Constants()
    functions: list[str] = []
    ordered = in_order(kernels)
    for kernel in ordered:
        home = kernel.function.__module__.removeprefix("penstock.")
        functions += [f"/* {home}.{kernel.tree.name} */", head(kernel) + " {"]
        functions += [*Body(kernel, kernels, constants).write(), "}", ""]
    wrappers = [line for kernel in ordered for line in wrapper(kernel)]
    rows = [
        f'    {{"{kernel.name}", (PyCFunction)(void (*)(void))py_{kernel.name}, METH_FASTCALL, NULL}},'
        for kernel in ordered
    ]
    lines = [
        "/* The kernels of Penstock in C, translated from their Python. Generated: do not edit. */",
        "",
        '#include "kernels.h"',
        "",
        *constants.lines,
        "",
        *functions,
        *wrappers,
        '#include "rows.h"',
        '#include "keys.h"',
        '#include "row_writer.h"',
        '#include "avro_rows.h"',
        "",
        "static PyMethodDef METHODS[] = {",
        *rows,
        '    {"fnv1a", fnv1a, METH_O, NULL},',
        '    {"murmur2", murmur2, METH_O, NULL},',
        '    {"read_rows", (PyCFunction)(void (*)(void))read_rows, METH_FASTCALL, NULL},',
        '    {"write_avro_row", (PyCFunction)(void (*)(void))write_avro_row, METH_FASTCALL, NULL},',
        '    {"write_rows", (PyCFunction)(void (*)(void))write_rows, METH_FASTCALL, NULL},',
        "    {NULL, NULL, 0, NULL},",
        "};",
        "",
    ]
    text = "\n".join(lines)
    headers = [(ROOT / "native" / name).read_text(encoding="utf-8") for name in HEADERS]
    digest = hashlib.sha256("".join([*headers, text]).encode()).hexdigest()[:16]
    return f'{text}\n#define DIGEST "{digest}"\n#include "module.h"\n', digest


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 where something is stale"
    )
    options = parser.parse_args(arguments)
    text, digest = library_source()
    module = (
        '"""The digest of the C sources that belong to these kernels. Generated: do not edit."""\n\n'
        f'DIGEST = "{digest}"\n'
    )
    stale = [
        path
        for path, wanted in ((C_FILE, text), (DIGEST_FILE, module))
        if not path.exists() or path.read_text(encoding="utf-8") != wanted
    ]
    if options.check:
        for path in stale:
            print(f"stale: {path.relative_to(ROOT)}; run python tools/generate_kernels.py")
        return 1 if stale else 0
    C_FILE.write_text(text, encoding="utf-8")
    DIGEST_FILE.write_text(module, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
