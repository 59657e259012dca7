"""Java 17's digits, where they are not the shortest ones, and where they are."""
# ruff: noqa: E501 - tables of values read better in long lines

import numpy as np
import pytest

from weirflow.ivm.kernel.expressions.numbers.java_double import FLOAT_BITS, java_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2e23, "1.9999999999999998E23"),
        (1e23, "9.999999999999999E22"),
        (4.32e23, "4.3200000000000003E23"),
        (1.7623513982099548e18, "1.76235139820995482E18"),
        (-2.073377432410427e17, "-2.07337743241042688E17"),
        (2.0**62, "4.6116860184273879E18"),
        (2.0**63, "9.223372036854776E18"),
        (2.9218721551351594e25, "2.9218721551351594E25"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (123456.789, "123456.789"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
    ],
)
def test_doubles(number, text):
    assert java_text(number) == text


@pytest.mark.parametrize(("number", "text"), [(0.1, "0.1"), (16777216.0, "1.6777216E7"), (3.4028235e38, "3.4028235E38"), (1e-45, "1.4E-45"), (5.644127686971421e25, "5.6441276E25")])  # fmt: skip
def test_floats(number, text):
    assert java_text(float(np.float32(number)), FLOAT_BITS) == text


def test_every_text_reads_back_as_its_number():
    numbers = np.frombuffer(np.random.default_rng(1).bytes(8 * 2000), "<f8")
    for number in numbers[np.isfinite(numbers)].tolist():
        assert float(java_text(number)) == pytest.approx(number, rel=2**-52)
