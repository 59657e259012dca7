"""Typed expressions evaluated over Arrow columns, with the results and the errors Spark has in ANSI mode."""

from weirflow.ivm.kernel.expressions.compile import (
    Evaluator,
    compile_expression,
    compile_expressions,
)
from weirflow.ivm.kernel.expressions.nested.generators import Generator, compile_generator
from weirflow.ivm.kernel.expressions.registry import SUPPORTED, UnknownFunction, is_supported

__all__ = [
    "SUPPORTED",
    "Evaluator",
    "Generator",
    "UnknownFunction",
    "compile_expression",
    "compile_expressions",
    "compile_generator",
    "is_supported",
]
