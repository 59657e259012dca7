"""Calls of functions of numbers, bits, texts and hashes over hostile rows, as SQL."""
# ruff: noqa: E501 - tables of values read better in long lines

from __future__ import annotations

import random

import pyarrow as pa
from support.expression_data import edge_table

NUMBERS = ["f64", "f64b", "f32", "money", "i32", "small", "d18_6", "angle"]
_UNARY = [
    "exp",
    "expm1",
    "ln",
    "log2",
    "log10",
    "log1p",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "cbrt",
    "degrees",
    "radians",
]
CODES = [
    "", "0", "a", "F", "aF", "abc", "0x1F", "1G", "zz", "é", "537061726B", "YQ==", "YWI=", "YWJj", "YWJjZA", "YQ", "Y", "YQ=", "YQ===", "Y=Q=", "YWI=YWI=",
    "Y W J j", "YW\nJj", "YQ==\r\n", "!YQ==!", "YQ==x", "====", "=", "+/+/", "-_-_", "a+b", "a%20b", "%", "%4", "%zz", "%+f", "%-1", "%41%42", "%E2%82%AC", "%E2%82", "%ff%fe",
    "%f0%9f%98%80", "%C3x", "a b&c=d/é?~*.-_!'()", "%00", "a%2Bb+c", "%４１", "https://x.org/a?b=c&d=e#f", "79927398713", "4111111111111111", "18", "1 8", "١", "00", "059",
    "a,b,c", ",", "abc,,b", "b", "a'b", "it\\'s", "''", "Robert", "Rupert", "Tymczak", "Pfister", "Honeyman", "Ashcraft", "x1y", "tést", "BbFfPpVv", "a-b",
    "kitten", "sitting", "😀😀", "a😀b", "日本", "10", "-10", "ff", "-ff", "7fffffffffffffff", "8000000000000000", "-8000000000000000", "ffffffffffffffff", "1ffffffffffffffff",
    "18446744073709551615", "18446744073709551616", "-18446744073709551615", "9223372036854775808", " 12 ", "\t12", "12z", "z", "-", "--1", "+1", "1.5",
]  # fmt: skip
ANGLES = [0.0, -0.0, 0.5, -0.5, 0.25, 0.975, 0.99, 1.0, -1.0, 1.5, -0.2, 1e-9, -1e-20, 0.4142, -0.2929, 0.347, 20.0, 21.9, 22.0, -22.5, 700.0, 709.5, 710.2, 710.5, -745.0, -745.2, 0.6931, 1.04, 38.0, -38.9, 39.0]  # fmt: skip
COLUMNS = {"code": (CODES, pa.string()), "code2": (CODES, pa.string()), "angle": (ANGLES, pa.float64())}


def rows(count: int, seed: int) -> pa.Table:
    """A table of edge cases, with columns made for these functions."""
    table, draw = edge_table(count, seed), random.Random(seed)
    for name, (values, kind) in COLUMNS.items():
        filled = (values * (count // len(values) + 1))[:count]
        draw.shuffle(filled)
        filled = [None if draw.random() < 0.05 else value for value in filled]
        table = table.append_column(name, pa.array(filled, kind))
    return table


def maths() -> list[str]:
    found = [f"{name}({column})" for name in _UNARY for column in ("f64", "angle")]
    found += [f"{name}(i32)" for name in _UNARY] + ["exp(snum)", "ln(d18_6)", "cbrt(f32)"]
    for left, right in (("f64", "f64b"), ("angle", "small"), ("small", "angle"), ("f64", "small"), ("i32", "f32")):
        found += [f"{name}({left}, {right})" for name in ("power", "pow", "atan2", "hypot", "log")]
    return [
        *found, "log(f64)", "log(2, i64)", "log(f64, 10)", "power(2, small)", "power(f64, 0.5)", "power(f64, 2)", "power(0.99999999D, f64)", "pi()", "e()", "pi() * f64",
        "factorial(small)", "factorial(i8)", "factorial(i32)", "nanvl(f64, f64b)", "nanvl(f32, f64)", "nanvl(f64, 0)", "nanvl(f32, f32b)", "nanvl(f64, 1D / small)", "positive(i32)",
        "width_bucket(f64, -1, 1, 10)", "width_bucket(small, 8, -8, 4)", "width_bucket(f64, f64b, 100, i64)", "width_bucket(angle, 0, 1, small)", "width_bucket(f64, -1e300, 1e300, 9223372036854775806)",
        "conv(code, 16, 10)", "conv(code, 10, 16)", "conv(code, 10, -16)", "conv(code, 16, -10)", "conv(code, 36, 2)", "conv(code, 2, 36)", "conv(code, small, 10)", "conv(code, 10, small)", "conv(i64, 10, -36)",
        "zeroifnull(i32)", "zeroifnull(f64)", "zeroifnull(d18_6)", "nullifzero(i32)", "nullifzero(f64)", "nullifzero(d18_6)", "typeof(i8)", "typeof(arrst)", "typeof(m)", "typeof(d18_6)", "typeof(ntz)", "typeof(null)",
    ]  # fmt: skip


def bits() -> list[str]:
    found = [f"bit_count({name})" for name in ("b", "i8", "i16", "i32", "i64", "small")]
    found += [f"bit_get({name}, small)" for name in ("i8", "i16", "i32", "i64")]
    found += [f"{name}({column})" for name in ("bin", "hex", "bitmap_bit_position", "bitmap_bucket_number") for column in ("i8", "i32", "i64")]  # fmt: skip
    return [
        *found, "getbit(i32, 0)", "bit_get(i64, 63)", "i32 >>> small", "i64 >>> small", "i8 >>> 1", "shiftrightunsigned(i32, 40)", "i64 >>> i8", "bitmap_count(bin)", "bitmap_count(bin || bin2)",
    ]  # fmt: skip


HASHED = [
    "b",
    "i8",
    "i16",
    "i32",
    "i64",
    "f32",
    "f64",
    "d7_2",
    "d15_2",
    "d18_6",
    "d38_10",
    "d38_0",
    "s",
    "bin",
    "d",
    "ts",
    "ntz",
    "arr",
    "arrs",
    "arrd",
    "arrarr",
    "st",
    "arrst",
]


def hashes() -> list[str]:
    found = [f"{name}({column})" for name in ("hash", "xxhash64") for column in HASHED]
    found += [f"{name}({column})" for name in ("md5", "sha", "sha1", "crc32") for column in ("s", "bin")]
    found += [f"{name}({', '.join(HASHED)})" for name in ("hash", "xxhash64")]
    return [
        *found, "sha2(s, 256)", "sha2(bin, 0)", "sha2(s, 224)", "sha2(s, 384)", "sha2(s, 512)", "sha2(s, small)", "hash(null)", "xxhash64(null, i32)", "hash(repeat(s, 40))", "xxhash64(repeat(s, 40))",
        "hash(repeat(s, 700), i32)", "xxhash64(repeat(s, 700), i32)", "hash(1, 'a', s)", "xxhash64(named_struct('x', s, 'y', arr))", "hash(array(s, s2), array(st))",
    ]  # fmt: skip


def texts() -> list[str]:
    found = [f"{name}({column})" for name in ("soundex", "luhn_check", "quote", "mask") for column in ("s", "code")]
    found += [f"levenshtein({pair})" for pair in ("s, s2", "code, code2", "s, ''", "code, 'sitting', 3", "code, code2, small", "s, s2, 0")]  # fmt: skip
    return [
        *found, "find_in_set(code, code2)", "find_in_set('b', code)", "find_in_set('', code)", "find_in_set(s, 'a,é,,😀')",
        "overlay(s, s2, small)", "overlay(s, s2, small, 2)", "overlay(bin, bin2, small, small)", "overlay(s PLACING 'XY' FROM 2)", "overlay(s PLACING s2 FROM small FOR small)", "overlay(s, code, i32, i32b)",
        "mask(s, 'Q', 'q', 'd', 'o')", "mask(s, NULL, 'q', NULL, '-')", "mask(code, 'Q')", "elt(small, s, s2)", "elt(2, s, cast(i32 as string), s2)", "elt(small, bin, bin2)", "elt(1, s, cast(1 / small as string))",
        "elt(small, i32, s)", "regexp_count(s, 'a')", "regexp_count(code, '[0-9]+')", "regexp_extract_all(code, '([a-z])([0-9a-f])', 1)", "regexp_extract_all(s, '[a-z]+', 0)", "regexp_instr(s, '[b-z]')", "regexp_instr(s, 'é')",
        "regexp_substr(s, '[a-z]+')", "regexp_substr(code, '[0-9]+')", "regexp_instr(code, '%', 0)", "regexp_count(s, '.')", "regexp_instr(code, 'b$')", "regexp_substr(s, 'x*')", "collation(s)",
    ]  # fmt: skip


CHARSETS = ["utf-8", "UTF-8", "us-ascii", "iso-8859-1", "utf-16be", "UTF-16LE", "utf-16"]


def encodings() -> list[str]:
    found = [f"{name}({column})" for name in ("hex", "base64") for column in ("s", "bin", "code")]
    found += [f"{name}({column})" for name in ("unhex", "unbase64", "url_encode", "url_decode", "try_url_decode") for column in ("code", "s")]  # fmt: skip
    found += [f"encode({column}, '{name}')" for name in CHARSETS for column in ("s", "code")]
    found += [f"decode({column}, '{name}')" for name in CHARSETS for column in ("bin", "encode(s, 'utf-16')", "encode(code, 'UTF-16LE')", "encode(s, 'utf-8')")]  # fmt: skip
    found += [f"{name}(s)" for name in ("is_valid_utf8", "make_valid_utf8", "validate_utf8", "try_validate_utf8")]
    return [
        *found, "base64(repeat(s, 20))", "unbase64(base64(repeat(s, 30)))", "unhex(hex(s))", "encode(s, s2)", "decode(bin, s)", "to_binary(code)", "to_binary(code, 'hex')", "to_binary(s, 'utf-8')", "to_binary(s, 'UTF8')",
        "try_to_binary(code, 'hex')", "try_to_binary(code)", "try_to_binary(s, 'utf-8')", "decode(i32, 1, 'a', 10, 'b', null, 'n', 'z')", "decode(s, 'a', i32, 'abc', i32b)", "decode(small, 1, f64, 2, i32, 0)", "hex(f64)", "hex(d)", "hex(b)",
    ]  # fmt: skip


FAMILIES = {"maths": maths, "bits": bits, "hashes": hashes, "texts": texts, "encodings": encodings}
