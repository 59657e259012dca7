"""Which of our functions is which class of Spark's expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Function:
    """A function of ours that is a class of Spark's.

    Attributes:
        name: ours, canonical.
        arguments: the fields that are its arguments, in our order; those that Spark left out are left out.
        rest: the field with all further arguments.
        settings: fields that must have these values for the two to be the same.
        mode: the field that says what becomes of values that do not fit.
        ignored: fields that make no difference.
    """

    name: str
    arguments: tuple[str, ...] = ()
    rest: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    mode: str | None = None


_ARITHMETIC = """
Add add, Subtract subtract, Multiply multiply, Divide divide, IntegralDivide integral_divide, Remainder remainder,
Pmod pmod
"""
_BINARY = """
EqualTo equal, EqualNullSafe equal_null_safe, LessThan less, LessThanOrEqual less_equal, GreaterThan greater,
GreaterThanOrEqual greater_equal, And and, Or or, RLike rlike, Atan2 atan2, Hypot hypot, Pow power, Contains contains,
StartsWith startswith, EndsWith endswith, ShiftLeft shiftleft, ShiftRight shiftright, BitwiseAnd bitwise_and,
BitwiseOr bitwise_or, BitwiseXor bitwise_xor, ArrayContains array_contains, ArrayPosition array_position,
Logarithm log, ShiftRightUnsigned shiftrightunsigned, BitwiseGet bit_get, Sha2 sha2, FindInSet find_in_set,
NaNvl nanvl, ToNumber to_number, TryToNumber try_to_number, ToCharacter to_char,
RegExpCount regexp_count, RegExpSubStr regexp_substr
"""
_UNARY = """
Not not, IsNull is_null, IsNotNull is_not_null, Upper upper, Lower lower, Length length, IsNaN is_nan, Acos acos,
Acosh acosh, Asin asin, Asinh asinh, Atan atan, Atanh atanh, Cbrt cbrt, Cos cos, Cosh cosh, Cot cot, Csc csc,
ToDegrees degrees, ToRadians radians, Exp exp, Expm1 expm1, Factorial factorial, Log ln, Log10 log10, Log1p log1p,
Log2 log2, Rint rint, Sec sec, Signum sign, Sin sin, Sinh sinh, Sqrt sqrt, Tan tan, Tanh tanh, UnaryPositive positive,
BitwiseNot bitwise_not, Ascii ascii, Chr chr, BitLength bit_length, OctetLength octet_length, InitCap initcap,
Md5 md5, Reverse reverse, StringSpace space, ArrayDistinct array_distinct, ArrayMax array_max, ArrayMin array_min,
ArraySize array_size, Flatten flatten, MapKeys map_keys, MapValues map_values, Year year, Quarter quarter, Month month,
DayOfMonth day, DayOfWeek dayofweek, DayOfYear dayofyear, WeekDay weekday, WeekOfYear weekofyear, UnixDate unix_date,
UnixMicros unix_micros, UnixMillis unix_millis, UnixSeconds unix_seconds, DateFromUnixDate date_from_unix_date,
MicrosToTimestamp timestamp_micros, MillisToTimestamp timestamp_millis, Ceil ceil, Floor floor, Sha1 sha1,
Crc32 crc32, Bin bin, BitwiseCount bit_count, BitmapBitPosition bitmap_bit_position, Hex hex, SoundEx soundex,
BitmapBucketNumber bitmap_bucket_number, BitmapCount bitmap_count, UrlEncode url_encode, TypeOf typeof,
Collation collation
"""
_OF_INPUT = """
IsValidUTF8 is_valid_utf8, MakeValidUTF8 make_valid_utf8, ValidateUTF8 validate_utf8,
TryValidateUTF8 try_validate_utf8, Luhncheck luhn_check, Quote quote
"""
_OF_ARRAYS = """
ArrayAppend array_append, ArrayPrepend array_prepend, ArrayRemove array_remove, ArrayRepeat array_repeat,
ArrayUnion array_union, ArrayIntersect array_intersect, ArrayExcept array_except, ArraysOverlap arrays_overlap,
MapContainsKey map_contains_key, MapFromArrays map_from_arrays, Get get
"""
_OF_ARRAY = "MapEntries map_entries, MapFromEntries map_from_entries, ArrayCompact array_compact"
_FAILS = "failOnError"
_STRICT_CHARSETS = {"legacyCharsets": False, "legacyErrorAction": False}


def _table(written: str, *arguments: str, mode: str | None = None, **settings: Any) -> dict[str, Function]:
    pairs = (one.split() for one in written.split(","))
    return {kind: Function(name, arguments, settings=settings, mode=mode) for kind, name in pairs}


FUNCTIONS: dict[str, Function] = {
    **_table(_ARITHMETIC, "left", "right", mode="evalContext"),
    **_table(_BINARY, "left", "right"),
    **_table(_UNARY, "child"),
    **_table(_OF_ARRAYS, "left", "right"),
    **_table(_OF_ARRAY, "child"),
    **_table("DayName dayname, MonthName monthname, SecondsToTimestamp timestamp_seconds", "child"),
    **_table("FromUTCTimestamp from_utc_timestamp, ToUTCTimestamp to_utc_timestamp", "left", "right"),
    **_table("LengthOfJsonArray json_array_length, JsonObjectKeys json_object_keys", "child"),
    "MakeDTInterval": Function("make_dt_interval", ("days", "hours", "mins", "secs")),
    "GetJsonObject": Function("get_json_object", ("json", "path")),
    "NextDay": Function("next_day", ("startDate", "dayOfWeek"), mode=_FAILS),
    "ConvertTimezone": Function("convert_timezone", ("sourceTz", "targetTz", "sourceTs")),
    **_table("UnaryMinus negate, Abs abs", "child", mode=_FAILS),
    **_table("Round round, BRound bround", "child", "scale", mode="ansiEnabled"),
    **_table("RoundCeil ceil, RoundFloor floor", "child", "scale"),
    **_table("StringLPad lpad, StringRPad rpad", "str", "len", "pad"),
    **_table("Left left, Right right", "str", "len"),
    **_table("DateAdd date_add, DateSub date_sub", "startDate", "days"),
    **_table("Like like, ILike ilike", "left", "right", escapeChar="\\"),
    **_table(_OF_INPUT, "input"),
    "In": Function("in", ("value",), rest="list"),
    "Coalesce": Function("coalesce", rest="children"),
    "Concat": Function("concat", rest="children"),
    "ConcatWs": Function("concat_ws", rest="children"),
    "Greatest": Function("greatest", rest="children"),
    "Least": Function("least", rest="children"),
    "Substring": Function("substring", ("str", "pos", "len")),
    "StringInstr": Function("instr", ("str", "substr")),
    "StringLocate": Function("locate", ("substr", "str", "start")),
    "StringRepeat": Function("repeat", ("str", "times")),
    "StringReplace": Function("replace", ("srcExpr", "searchExpr", "replaceExpr")),
    "StringSplit": Function("split", ("str", "regex", "limit")),
    "SplitPart": Function("split_part", ("str", "delimiter", "partNum")),
    "StringTranslate": Function("translate", ("srcExpr", "matchingExpr", "replaceExpr")),
    "SubstringIndex": Function("substring_index", ("strExpr", "delimExpr", "countExpr")),
    "RegExpReplace": Function("regexp_replace", ("subject", "regexp", "rep", "pos")),
    "RegExpExtract": Function("regexp_extract", ("subject", "regexp", "idx")),
    "AddMonths": Function("add_months", ("startDate", "numMonths")),
    "DateDiff": Function("date_diff", ("endDate", "startDate")),
    "LastDay": Function("last_day", ("startDate",)),
    "MakeDate": Function("make_date", ("year", "month", "day"), mode=_FAILS),
    "TruncDate": Function("trunc", ("date", "format")),
    "CreateArray": Function("array", rest="children", ignored=("useStringTypeWhenEmpty",)),
    "CreateMap": Function("map", rest="children", ignored=("useStringTypeWhenEmpty",)),
    "CreateNamedStruct": Function("named_struct", rest="children"),
    "ArrayJoin": Function("array_join", ("array", "delimiter", "nullReplacement")),
    "ElementAt": Function("element_at", ("left", "right"), mode=_FAILS),
    "Size": Function("size", ("child",), mode="legacySizeOfNull"),
    "ArrayInsert": Function(
        "array_insert", ("srcArrayExpr", "posExpr", "itemExpr"), settings={"legacyNegativeIndex": False}
    ),
    "MapConcat": Function("map_concat", rest="children"),
    "StringToMap": Function("str_to_map", ("text", "pairDelim", "keyValueDelim")),
    "Slice": Function("slice", ("x", "start", "length")),
    "SortArray": Function("sort_array", ("base", "ascendingOrder")),
    "Murmur3Hash": Function("hash", rest="children", settings={"seed": 42}),
    "XxHash64": Function("xxhash64", rest="children", settings={"seed": 42}),
    "Pi": Function("pi"),
    "EulerNumber": Function("e"),
    "WidthBucket": Function("width_bucket", ("value", "minValue", "maxValue", "numBucket")),
    "Conv": Function("conv", ("numExpr", "fromBaseExpr", "toBaseExpr"), mode="ansiEnabled"),
    "Unhex": Function("unhex", ("child",), settings={_FAILS: False}),
    "Base64": Function("base64", ("child",), settings={"chunkBase64": True}),
    "UnBase64": Function("unbase64", ("child",), settings={_FAILS: False}),
    "Encode": Function("encode", ("str", "charset"), settings=_STRICT_CHARSETS),
    "StringDecode": Function("string_decode", ("bin", "charset"), settings=_STRICT_CHARSETS),
    "ToBinary": Function("to_binary", ("expr", "format"), ignored=("nullOnInvalidFormat",)),
    "ParseUrl": Function("parse_url", rest="children", mode=_FAILS),
    "UrlDecode": Function("url_decode", ("child",), settings={_FAILS: True}),
    "TryUrlDecode": Function("try_url_decode", ("expr",), ignored=("replacement",)),
    "FormatNumber": Function("format_number", ("x", "d")),
    "FormatString": Function("format_string", rest="children"),
    "Elt": Function("elt", rest="children", mode=_FAILS),
    "Levenshtein": Function("levenshtein", ("left", "right", "threshold")),
    "Overlay": Function("overlay", ("input", "replace", "pos", "len")),
    "Mask": Function("mask", ("input", "upperChar", "lowerChar", "digitChar", "otherChar")),
    "RegExpExtractAll": Function("regexp_extract_all", ("subject", "regexp", "idx")),
    "RegExpInStr": Function("regexp_instr", ("subject", "regexp", "idx")),
}
"""By Spark's class. Arguments have the types that Spark cast them to."""

CHILD_ONLY: dict[str, tuple[str, ...]] = {
    "KnownNullable": ("child",),
    "KnownNotNull": ("child",),
}
"""Classes that mean their only child, and the fields that add nothing to it."""
