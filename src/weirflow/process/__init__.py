"""Process functions: code with keyed state and timers, run row by row; embedded here, or on Spark."""

from weirflow.process.co_process_runner import CoProcessRunner
from weirflow.process.context import END_OF_TIME, BroadcastContext, ElementContext, OpenContext, Timers
from weirflow.process.function import LATE, CoProcessFunction, ProcessFunction, Row
from weirflow.process.process_runner import ProcessRunner
from weirflow.process.run import run_co_process, run_process
from weirflow.process.runner import ProcessResult

__all__ = [
    "END_OF_TIME",
    "LATE",
    "BroadcastContext",
    "CoProcessFunction",
    "CoProcessRunner",
    "ElementContext",
    "OpenContext",
    "ProcessFunction",
    "ProcessResult",
    "ProcessRunner",
    "Row",
    "Timers",
    "run_co_process",
    "run_process",
]
