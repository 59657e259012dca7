"""Words read from and written to memory by address, for kernels that look at Arrow's buffers where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import float32, float64, int64, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from weirflow.ivm.compiled.signatures import NEW_INTS, NEW_ROWS, compiled


def _reader(bits: int) -> Any:
    """A function of an address: the signed integer of so many bits that lies there, as int64."""

    def read(_: Any, _address: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            place = builder.inttoptr(arguments[0], kind.as_pointer())
            value = builder.load(place, align=1)
            return value if bits == 64 else builder.sext(value, ir.IntType(64))  # noqa: PLR2004 - a whole word

        return int64(types.int64), generate

    return intrinsic(read)


def _writer(bits: int) -> Any:
    """A function of an address and an int64, whose lowest bits it writes there."""

    def write(_: Any, _address: Any, _value: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            place = builder.inttoptr(arguments[0], kind.as_pointer())
            low = arguments[1] if bits == 64 else builder.trunc(arguments[1], kind)  # noqa: PLR2004 - a whole word
            builder.store(low, place, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(write)


def _as_float(kind: Any, bits: int) -> Any:
    """A function of the bits of a floating-point number, which it returns as one."""

    def read(_: Any, _word: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            low = arguments[0] if bits == 64 else builder.trunc(arguments[0], ir.IntType(bits))  # noqa: PLR2004
            return builder.bitcast(low, ir.DoubleType() if bits == 64 else ir.FloatType())  # noqa: PLR2004

        return kind(types.int64), generate

    return intrinsic(read)


def _as_bits() -> Any:
    """A function of a double: its bits."""

    def read(_: Any, _number: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.IntType(64))

        return int64(types.float64), generate

    return intrinsic(read)


def _as_pointer() -> Any:
    """A function of an address: a pointer to the int64 there."""

    def read(_: Any, _address: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

        return types.CPointer(int64)(types.int64), generate  # type: ignore[no-untyped-call]

    return intrinsic(read)


read_8, read_16, read_32, read_64 = (_reader(bits) for bits in (8, 16, 32, 64))
write_8, write_16, write_32, write_64 = (_writer(bits) for bits in (8, 16, 32, 64))
as_single, as_double = _as_float(float32, 32), _as_float(float64, 64)
as_word = _as_bits()
_pointer = _as_pointer()


@compiled(NEW_INTS(int64, int64))
def ints_at(address: Any, length: Any) -> Any:
    """The so many words at an address."""
    return carray(_pointer(address), (length,))


@compiled(NEW_ROWS(int64, int64, int64))
def rows_at(address: Any, length: Any, width: Any) -> Any:
    """The so many rows of words at an address."""
    return carray(_pointer(address), (length, width))
