"""Functions of numbers, bits, texts and hashes without Spark: what Spark's own documentation says of them."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from weirflow import IncrementalFlow
from weirflow.errors import DataError, QueryError

EXAMPLES = {
    "md5('Spark')": "8cde774d6f7333752ed72cacddb05126",
    "sha1('Spark')": "85f5955f4b27a9a4c2aab6ffe5d7189fc298b92c",
    "sha2('Spark', 256)": "529bc3b07127ecb7e53a4dcf1991d9152c24537d919178022b2c42657f79a26b",
    "crc32('Spark')": 1557323817,
    "hash('Spark', array(123), 2)": -1321691492,
    "xxhash64('Spark', array(123), 2)": 5602566077635097486,
    "soundex('Miller')": "M460",
    "levenshtein('kitten', 'sitting')": 3,
    "levenshtein('kitten', 'sitting', 2)": -1,
    "conv('100', 2, 10)": "4",
    "conv(-10, 16, -10)": "-16",
    "format_number(12332.123456, 4)": "12,332.1235",
    "format_string('Hello World %d %s', 100, 'days')": "Hello World 100 days",
    "parse_url('http://spark.apache.org/path?query=1', 'HOST')": "spark.apache.org",
    "parse_url('http://spark.apache.org/path?query=1', 'QUERY', 'query')": "1",
    "try_parse_url('inva lid://spark.apache.org/path?query=1', 'QUERY')": None,
    "luhn_check('79927398713')": True,
    "mask('abcd-EFGH-8765-4321')": "xxxx-XXXX-nnnn-nnnn",
    "to_number('$78.12', '$99.99')": Decimal("78.12"),
    "to_char(12454, '99G999')": "12,454",
    "to_char(-12454.8, '99G999D9S')": "12,454.8-",
    "width_bucket(5.3, 0.2, 10.6, 5)": 3,
    "url_encode('https://spark.apache.org')": "https%3A%2F%2Fspark.apache.org",
    "url_decode('https%3A%2F%2Fspark.apache.org')": "https://spark.apache.org",
    "base64('Spark SQL')": "U3BhcmsgU1FM",
    "unbase64('U3BhcmsgU1FM')": b"Spark SQL",
    "unbase64('YQ===')": b"a",
    "overlay('Spark SQL' PLACING '_' FROM 6)": "Spark_SQL",
    "overlay('Spark SQL' PLACING 'ANSI ' FROM 7 FOR 0)": "Spark ANSI SQL",
    "find_in_set('ab', 'abc,b,ab,c,def')": 3,
    "elt(1, 'scala', 'java')": "scala",
    "factorial(5)": 120,
    "hex('Spark SQL')": "537061726B2053514C",
    "decode(unhex('537061726B2053514C'), 'UTF-8')": "Spark SQL",
    "bin(-13)": "1111111111111111111111111111111111111111111111111111111111110011",
    "bit_get(11, 2)": 0,
    "bitmap_bit_position(123)": 122,
    "4 >>> 1": 2,
    "quote('Don''t')": "'Don\\'t'",
    "regexp_count('Steven Jones and Stephen Smith are the best players', 'Ste(v|ph)en')": 2,
    "regexp_extract_all('100-200, 300-400', '([0-9]+)-([0-9]+)', 1)": ["100", "300"],
    "regexp_substr('Steven Jones and Stephen Smith are the best players', 'Ste(v|ph)en')": "Steven",
    "hypot(3, 4)": 5.0,
    "cbrt(27.0)": 3.0,
    "power(2, 3)": 8.0,
    "log10(10)": 1.0,
    "ln(0)": None,
    "nanvl(cast('NaN' AS DOUBLE), 123)": 123.0,
    "acos(2)": math.nan,
    "typeof(array(1))": "array<int>",
    "ceil(3.1411, 3)": Decimal("3.142"),
    "zeroifnull(NULL)": 0,
}


def test_what_the_documentation_of_spark_says() -> None:
    with IncrementalFlow() as flow:
        flow.register_source("t", "id INT")
        chosen = ", ".join(f"{text} AS c{number}" for number, text in enumerate(EXAMPLES))
        flow.register_view("v", f"SELECT {chosen} FROM t")
        flow.tick("t", [{"id": 1}])
        (found,) = flow.snapshot("v").to_pylist()
    assert {text: repr(value) for text, value in zip(EXAMPLES, found.values(), strict=True)} == {
        text: repr(value) for text, value in EXAMPLES.items()
    }


FAILING = {
    "url_decode(s)": "CANNOT_DECODE_URL",
    "parse_url(s, 'HOST')": "INVALID_URL",
    "to_number(s, '99')": "INVALID_FORMAT.MISMATCH_INPUT",
    "to_binary(s, 'hex')": "CONVERSION_INVALID_INPUT",
    "encode(s, 'latin')": "INVALID_PARAMETER_VALUE.CHARSET",
    "decode(encode(s, 'utf-16'), 'us-ascii')": "MALFORMED_CHARACTER_CODING",
    "elt(length(s), 'a')": "INVALID_ARRAY_INDEX",
    "bit_get(1, 10 * length(s))": "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
    "conv(repeat(length(s), 70), 10, 16)": "ARITHMETIC_OVERFLOW",
}


@pytest.mark.parametrize("text", FAILING)
def test_what_has_no_value_fails_the_tick_with_the_condition_of_spark(text: str) -> None:
    with IncrementalFlow() as flow:
        flow.register_source("t", "s STRING")
        flow.register_view("v", f"SELECT {text} AS x FROM t")
        with pytest.raises(DataError) as raised:
            flow.tick("t", [{"s": "% %zz"}])
    assert raised.value.condition == FAILING[text]


@pytest.mark.parametrize(
    "text", ["sin(d)", "sentences(s)", "format_string(s, 1)", "to_number(s, s)", "regexp_count(s, '(?=a)')", "hash(m)"]
)
def test_what_only_spark_computes_is_refused(text: str) -> None:
    with IncrementalFlow() as flow:
        flow.register_source("t", "s STRING, d DOUBLE, m MAP<STRING, INT>")
        with pytest.raises(QueryError):
            flow.register_view("v", f"SELECT {text} AS x FROM t")
