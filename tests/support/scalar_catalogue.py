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
NUMBER_FORMATS = [
    "999",
    "000",
    "9,999",
    "0,000",
    "999.99",
    "000.00",
    ".99",
    "99.",
    "S999",
    "999S",
    "MI99.9",
    "99.9MI",
    "$99.99",
    "S$9,999.99",
    "9,999.99PR",
    "$999PR",
    "90,09",
    "09D90",
    "9G999D9",
    "s99",
    "s99mi",
    "mi99pr",
    "999999999999999999999.99",
    "S.9",
    ".00MI",
    "0.0PR",
    "$9",
    "S0,009,999.9000",
]
AMOUNTS = ["", " ", "1", "12", "123", "1234", "1,234", "12,34", "1,2,3", "-1", "+1", "1-", "1+", "$1", "-$1", "$-1", "<1>", "<1", "1>", "<-1>", "1.5", ".5", "5.", "1.55", "1.555", "-1.5-", "1 2", " 12 ", "12 .5", "1\u00a02", "١٢", "0", "000", "00.00", "$", "-", ",", "1,", ",1", "9,999.99", "<9,999.99>", "$12.34", "+$1,234.56", "-$9,999.99", "x", "1x", "1e3", "$1,2", "0,001", "12.3-", "-12.3", "1..2", "<$12>", "12345678901234567890.12", "\t7", "7\n", "- 7", "$ 7", "7 -"]  # fmt: skip
URLS = [
    "http://spark.apache.org/path?query=1", "https://u:p@example.com:8080/a/b/c.html?x=1&y=2&x=3#frag", "http://user@host", "http://host:", "http://host:80a/", "http://host:99999999999/", "http://host:00000000000080/", "ftp://1.2.3.4/x", "ftp://1.2.3.256/x", "http://1.2.3/x",
    "http://1.2.3.4.5/", "http://[::1]:80/", "http://[1:2:3:4:5:6:7:8]/", "http://[1:2:3:4:5:6:7:8:9]/", "http://[::ffff:1.2.3.4]/", "http://[fe80::1%eth0]/", "http://[fe80::1%]/", "http://[]/", "http://[1::2::3]/", "http://[12345::]/",
    "http://[1:2:3:4:5:6:7::]/", "http://[::]", "http://[:1]/", "http://[1:]/", "mailto:a@b.c", "mailto:", "a:b c", "urn:x:y?z#f", "//host/path", "///path", "//", "//?q", "/only/path", "path?x=y", "?q=1", "#f", "", "a b", "http://a b/", "http://exa_mple.com/", "http://-a.com", "http://a-.com/",
    "http://a.b-c.d1/", "http://a.1b/", "http://a./", "http://a../", "http://.a/", "http://é.com/ü?ö=ä#ß", "http://x.y/%41%zz", "http://x.y/%4", "http://x.y/a%20b?c=%26", "http://x.y/|", "http://x.y/?a=[1]", "http://x.y/[", "http://x.y/a\\b", "1http://x", "h+t-t.p://x/y",
    "://x", ":x", "http:/x", "http:x", "http:", "http://", "http:///", "http://#f", "http://x?y", "http://x?a=1&ab=2&b=", "http://x?y&a", "http://x/?a==1&a=2", "http://u@v@w/", "http://u:@w/", "http://@w/", "http://x:80:90/", "http://$,;/x", "http://a%20b/c", "http://x y", "HTTP://X.Y/Z",
    "http://x.y/\u00a0", "http://x.y/\u2028", "http://x.y/\u0085", "http://x.y/\u0080", "http://x.y/😀?😀=1", "http://x.y#a#b", "http://x.y/a?b?c", "http://x.y/a^b", "jdbc:mysql://h/d", "file:///etc/x", "http://localhost", "http://a:b", "http://01.02.03.004/", "http://1.2.3.4x/", "http://1a/", "http://a.b.c.5/", "http://x.y/\t", "http://xn--e.x/",
]  # fmt: skip
ANGLES = [0.0, -0.0, 0.5, -0.5, 0.25, 0.975, 0.99, 1.0, -1.0, 1.5, -0.2, 1e-9, -1e-20, 0.4142, -0.2929, 0.347, 20.0, 21.9, 22.0, -22.5, 700.0, 709.5, 710.2, 710.5, -745.0, -745.2, 0.6931, 1.04, 38.0, -38.9, 39.0]  # fmt: skip
COLUMNS = {
    "code": (CODES, pa.string()),
    "code2": (CODES, pa.string()),
    "angle": (ANGLES, pa.float64()),
    "url": (URLS, pa.string()),
    "amount": (AMOUNTS, pa.string()),
}


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
        *found, *(f"{name}({column}, {places})" for name in ("ceil", "floor") for column in ("d18_6", "money", "d5_3") for places in (0, 1, -3)), "log(f64)", "log(2, i64)", "log(f64, 10)", "power(2, small)", "power(f64, 0.5)", "power(f64, 2)", "power(0.99999999D, f64)", "pi()", "e()", "pi() * f64",
        "factorial(small)", "factorial(i8)", "factorial(i32)", "nanvl(f64, f64b)", "nanvl(f32, f64)", "nanvl(f64, 0)", "nanvl(f32, f32b)", "nanvl(f64, 1D / small)", "positive(i32)",
        "width_bucket(f64, -1, 1, 10)", "width_bucket(small, 8, -8, 4)", "width_bucket(f64, f64b, 100, i64)", "width_bucket(angle, 0, 1, small)", "width_bucket(f64, -1e300, 1e300, 9223372036854775806)",
        "conv(code, 16, 10)", "conv(code, 10, 16)", "conv(code, 10, -16)", "conv(code, 16, -10)", "conv(code, 36, 2)", "conv(code, 2, 36)", "conv(code, small, 10)", "conv(code, 10, small)", "conv(i64, 10, -36)",
        "zeroifnull(i32)", "zeroifnull(f64)", "zeroifnull(d18_6)", "nullifzero(i32)", "nullifzero(f64)", "nullifzero(d18_6)", "typeof(i8)", "ceiling(money, 1)", "typeof(arrst)", "typeof(m)", "typeof(d18_6)", "typeof(ntz)", "typeof(null)",
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
    found += [f"levenshtein({pair})" for pair in ("s, s2", "code, code2", "s, ''", "code, 'sitting', 3", "code, code2, -1", "code, code2, 4", "s, s2, 0")]  # fmt: skip
    return [
        *found, "find_in_set(code, code2)", "find_in_set('b', code)", "find_in_set('', code)", "find_in_set(s, 'a,é,,😀')",
        "overlay(s, s2, small)", "overlay(s, s2, small, 2)", "overlay(bin, bin2, small, small)", "overlay(s PLACING 'XY' FROM 2)", "overlay(s PLACING s2 FROM small FOR small)", "overlay(s, code, i32, i32b)",
        "mask(s, 'Q', 'q', 'd', 'o')", "mask(s, NULL, 'q', NULL, '-')", "mask(code, 'Q')", "elt(small, s, s2)", "elt(2, s, cast(i32 as string), s2)", "elt(small, bin, bin2)", "elt(1, s, cast(1 / small as string))",
        "elt(small, i32, s)", "regexp_count(s, 'a')", "regexp_count(code, '[0-9]+')", "regexp_extract_all(code, '([a-z])([0-9a-f])', 1)", "regexp_extract_all(s, '[a-z]+', 0)", "regexp_instr(s, '[b-z]')", "regexp_instr(s, 'é')",
        "regexp_substr(s, '[a-z]+')", "regexp_substr(code, '[0-9]+')", "regexp_instr(code, '%', 0)", "regexp_extract_all(code, '([a-z])')", "regexp_count(s, '.')", "regexp_instr(code, 'b$')", "regexp_substr(s, 'x*')", "collation(s)",
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


def amounts() -> list[str]:
    found = [f"try_to_number(amount, '{one}')" for one in NUMBER_FORMATS if not one.startswith((".", "S."))]
    found += [f"to_char({name}, '{one}')" for one in NUMBER_FORMATS for name in ("d7_2", "d18_6", "small")]
    return [*found, "to_number(amount, '999')", "to_number(amount, 'S9,999.99')", "to_varchar(i64, '9,999')", "to_char(money, '9,999.999')", "to_char(f32, '99.9')"]  # fmt: skip


def urls() -> list[str]:
    parts = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host", "X")
    found = [f"{name}(url, '{part}')" for part in parts for name in ("parse_url", "try_parse_url")]
    return [*found, "parse_url(url, 'QUERY', 'x')", "try_parse_url(url, 'QUERY', 'a')", "try_parse_url(s, 'PATH')", "parse_url(code, 'HOST')"]  # fmt: skip


FORMATS = {
    "s": ("%s", "%10s", "%-10s|", "%.2s", "%-5.1s|", "%2$s %1$s %s", "%b", "%s%%%n"),
    "b": ("%s", "%b", "%B", "%S", "%6b|", "%-7.2b|"),
    "i32": ("%s", "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%,d", "%(d", "%,015d", "%x", "%X", "%o", "%#x", "%08x", "%#o", "%-6x|", "%S", "%(,+d", "%b", "%(08d"),
    "i64": ("%d", "%x", "%,d", "%o", "%s", "%+,20d"),
    "i8": ("%d", "%x", "%o", "%03d"),
    "f64": ("%s", "%f", "%.2f", "%10.3f", "%-12.1f|", "%012.2f", "%+.1f", "%,.2f", "%(.2f", "%.0f", "%e", "%.3e", "%E", "%12.1e", "%.10f", "%.20f", "% .1f", "%.0e", "%(020.3e"),
    "f32": ("%s", "%f", "%.3f", "%e", "%.2e"),
    "money": ("%.2f", "%.1f", "%,.0f", "%.1e"),
    "d18_6": ("%s", "%20s", "%b"),
    "d38_20": ("%s",),
}  # fmt: skip
"""Of columns, what Java's formats have for their types."""


def formats() -> list[str]:
    found = [f"format_string('{one}', {name}, s2)" for name, written in FORMATS.items() for one in written]
    found += [f"format_number({name}, {places})" for name in ("f64", "f32", "money", "i8", "i32", "i64", "d7_2", "d18_6", "d38_10", "d38_20", "angle") for places in (0, 2, 5)]  # fmt: skip
    return [*found, "format_number(f64, small)", "format_number(money, 1)", "format_number(f64, 400)", "printf('a')", "printf('%s-%s', s, i32)", "format_number(d38_10, 12)", "format_number(d38_0, 3)", "format_number(d7_2, 5000)", "format_number(d38_0, 4400)"]  # fmt: skip


FAMILIES = {
    "maths": maths,
    "bits": bits,
    "hashes": hashes,
    "texts": texts,
    "encodings": encodings,
    "formats": formats,
    "urls": urls,
    "amounts": amounts,
}

_ANYTHING = [
    "b",
    "i8",
    "i64",
    "f32",
    "f64",
    "d7_2",
    "d38_10",
    "s",
    "bin",
    "d",
    "ts",
    "ntz",
    "arr",
    "m",
    "st",
    "null",
    "'7'",
    "7",
    "1.5",
]
_OF_ONE = [
    "exp",
    "ln",
    "sinh",
    "cbrt",
    "degrees",
    "factorial",
    "bit_count",
    "bin",
    "hex",
    "bitmap_bit_position",
    "bitmap_bucket_number",
    "bitmap_count",
    "md5",
    "sha1",
    "crc32",
    "hash",
    "xxhash64",
    "soundex",
    "luhn_check",
    "quote",
    "mask",
    "unhex",
    "base64",
    "unbase64",
    "url_encode",
    "url_decode",
    "is_valid_utf8",
    "to_binary",
    "zeroifnull",
    "nullifzero",
    "typeof",
    "collation",
    "positive",
    "try_url_decode",
    "make_valid_utf8",
]
_OF_MORE = [
    "\npower(?, 1)",
    " atan2(?, 1)",
    " log(2, ?)",
    " bit_get(?, 1)",
    " bit_get(i32, ?)",
    " ? >>> 1",
    " nanvl(?, 1D)",
    " nanvl(f32, ?)",
    " nanvl(f64, ?)",
    " sha2(?, 256)",
    "\nfind_in_set(?, 'a')",
    " levenshtein(?, 'a')",
    " encode(?, 'utf-8')",
    " decode(?, 'utf-8')",
    " decode(?, 7, 'a')",
    " elt(?, 'a')",
    " elt(1, s, ?)",
    "\nelt(?, bin, bin)",
    " format_number(?, 2)",
    " format_number(f64, ?)",
    " format_string('%s', ?)",
    " format_string(?, 1)",
    " overlay(?, 'x', 1)",
    "\noverlay(s, s2, 1, ?)",
    " overlay(?, bin, 1)",
    " regexp_count(?, 'a')",
    " conv(?, 10, 16)",
    " width_bucket(?, 1, 2, 3)",
    " width_bucket(1, 2, 3, ?)",
    "\nceil(?, 1)",
    " floor(?, -1)",
    " to_number(?, '99')",
    " to_char(?, '99')",
    " parse_url(?, 'HOST')",
    " regexp_instr(?, 'a')",
    " mask(s, ?)\n",
]


def of_all_types() -> list[str]:
    """Calls of values of each type, whether they make sense or not."""
    found = [f"{name}({value})" for name in _OF_ONE for value in _ANYTHING]
    return found + [one.strip().replace("?", value) for one in _OF_MORE for value in _ANYTHING]
