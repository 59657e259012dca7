"""What ``checked`` lets through, what it refuses and how it says so."""

from __future__ import annotations

import enum
import functools
import inspect
import pickle
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
import pytest

from weirflow.arguments import (
    AtMost,
    Count,
    Folder,
    Hint,
    Lifetime,
    Name,
    NotEmpty,
    Place,
    Positive,
    Seconds,
    Secret,
    Sql,
    Uri,
    checked,
    require,
    require_plain_methods,
    rules_of,
)
from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from decimal import Decimal


class Reader(Protocol):
    def read(self, size: int) -> bytes: ...


class File:
    def read(self, size: int) -> bytes:
        return b"" * size


class Text(str):
    __slots__ = ()


class Elsewhere:
    def __fspath__(self) -> str:
        return "/somewhere/else"


class Lost:
    def __fspath__(self) -> str:
        raise LookupError("nobody knows")


class Numbered:
    def __fspath__(self) -> str:
        return 5  # type: ignore[return-value]  # the point of it


class Shapeless:
    @property
    def __class__(self) -> type:
        raise RuntimeError("no")


async def later(_epoch: int, _delta: str) -> None: ...


def one_by_one(_epoch: int, _delta: str) -> Any:
    yield 1


class CalledLater:
    async def __call__(self, _epoch: int, _delta: str) -> None: ...


class Bytewise:
    def __fspath__(self) -> bytes:
        return b"/somewhere"


@checked
class Shop:
    """One method for each kind of annotation; each returns what it was given."""

    def __init__(self, name: Name = "shop", *, history: Count = 10) -> None:
        self.name, self.history = name, history

    def text(self, it: str) -> Any:
        return it

    def number(self, it: int) -> Any:
        return it

    def count(self, it: Count) -> Any:
        return it

    def positive(self, it: Positive) -> Any:
        return it

    def real(self, it: float) -> Any:
        return it

    def seconds(self, it: Seconds) -> Any:
        return it

    def lifetime(self, it: Lifetime) -> Any:
        return it

    def flag(self, it: bool) -> Any:
        return it

    def named(self, it: Name) -> Any:
        return it

    def query(self, it: Sql) -> Any:
        return it

    def place(self, it: Place | None = None) -> Any:
        return it

    def folder(self, it: Folder | None = None) -> Any:
        return it

    def each(self, it: Iterable[str]) -> Any:
        return it

    def columns(self, it: str | Sequence[str] | None) -> Any:
        return it

    def mapping(self, it: Mapping[str, int]) -> Any:
        return it

    def pair(self, it: tuple[str, int]) -> Any:
        return it

    def many(self, it: tuple[int, ...]) -> Any:
        return it

    def choice(self, it: Literal["left", "right"]) -> Any:
        return it

    def call(self, it: Callable[[int, str], None]) -> Any:
        return it

    def any_call(self, it: Callable[..., Any]) -> Any:
        return it

    def error(self, it: type[OSError]) -> Any:
        return it

    def reader(self, it: Reader) -> Any:
        return it

    def decimal(self, it: Decimal) -> Any:
        return it

    def password(self, it: Annotated[str, AtMost("m"), Secret()]) -> Any:
        return it

    def uri(self, it: Annotated[Uri, Hint("use a folder")]) -> Any:
        return it

    def some(self, it: Annotated[Sequence[int], NotEmpty()]) -> Any:
        return it

    def anything(self, it: Any, *rest: int, **options: str) -> Any:
        return it, rest, options


GOOD = {
    "text": ["", "a", "é", Text("a")],
    "number": [0, -5, 2**63 - 1, np.int64(7), np.uint8(7)],
    "count": [0, 1],
    "positive": [1],
    "real": [0, 1.5, -3, np.float32(0.5)],
    "seconds": [0, 0.5, 1e9],
    "lifetime": [0.001],
    "flag": [True, False, np.bool_(True)],
    "named": ["a", "a b", "naïve", "x" * 255],
    "query": ["SELECT 1"],
    "place": [None, "a", Path("a"), PurePosixPath("a"), Elsewhere()],
    "columns": [None, "a", ["a", "b"], ("a",), []],
    "mapping": [{}, {"a": 1}],
    "pair": [("a", 1)],
    "many": [(), (1, 2)],
    "choice": ["left"],
    "call": [lambda _epoch, _delta: None, lambda *_: None, print, max],
    "any_call": [print, int, lambda: None, later, one_by_one],
    "error": [OSError, TimeoutError],
    "reader": [File()],
    "password": ["a"],
    "uri": ["s3://bucket"],
    "some": [[1]],
    "anything": [None, object()],
}

BAD = [
    ("text", None, "it is None; it must be a str"),
    ("text", b"a", "it is bytes (b'a'); it must be a str"),
    ("text", "\ud800", r"it is '\ud800'; it must be text that can be written in UTF-8"),
    ("number", True, "it is a bool (True); it must be an int"),
    ("number", 1.0, "it is a float (1.0); it must be an int"),
    ("number", "9", "it is a str ('9'); it must be an int"),
    ("number", 2**63, "it must be an int of 64 bits"),
    ("count", -1, "it is -1; it must be at least 0"),
    ("positive", 0, "it is 0; it must be at least 1"),
    ("real", float("nan"), "it is nan; it must be a finite number"),
    ("real", 10**400, "it must be a finite number"),
    ("real", "1", "it is a str ('1'); it must be a number"),
    ("real", True, "it is a bool (True); it must be a number"),
    ("seconds", -0.1, "it is -0.1; it must be at least 0"),
    ("seconds", 1e300, "it is 1e+300; it must be at most 1000000000"),
    ("lifetime", 0, "it is 0; it must be more than 0"),
    ("flag", 1, "it is an int (1); it must be True or False"),
    ("flag", None, "it is None; it must be True or False"),
    ("named", "", "it is ''; it must be a name that is not empty"),
    ("named", " ", "it must be a name that is not empty"),
    ("named", "x" * 256, "it must be a name of at most 255 characters"),
    ("named", "a\0", r"it is 'a\x00'; it must be a name without NUL characters"),
    ("place", b"a", "it is bytes (b'a'); it must be a str, a path or None"),
    ("place", "", "it is ''; it must be a path that is not empty"),
    ("place", "a\0", "it must be a path without NUL characters"),
    ("place", "x" * 5000, "it must be a path of at most 4096 characters"),
    ("place", 5, "it is an int (5); it must be a str, a path or None"),
    ("place", Bytewise(), "it must be a str, a path or None"),
    ("place", Lost(), "it is a Lost (<"),
    ("place", Numbered(), "it must be a str, a path or None"),
    ("place", Path("a\ud800b"), "it must be text that can be written in UTF-8"),
    ("place", "a/" + "x" * 256, "it must be a path whose parts have at most 255 bytes"),
    ("place", Path("é" * 128), "it must be a path whose parts have at most 255 bytes"),
    ("folder", "s3://bucket/x", "it is 's3://bucket/x'; it must be a path on this machine, not a URI"),
    ("folder", Path("s3://bucket/x"), "it must be a path on this machine, not a URI"),
    ("folder", "file:///x", "it must be a path on this machine, not a URI"),
    ("folder", "~nobody-of-that-name/x", "it must be a path in the home of a user that there is"),
    ("each", {"a": 1}, "it is a dict ({'a': 1}); it must be an iterable"),
    ("each", "ab", "it is a str ('ab'); it must be an iterable"),
    ("text", Shapeless(), "it must be a str"),
    ("number", 10**5000, "it is an int; it must be an int of 64 bits"),
    ("columns", b"ab", "it is bytes (b'ab'); it must be a str, a sequence of str or None"),
    ("columns", ("a", 5), "it[1] is an int (5); it must be a str"),
    ("mapping", "a", "it is a str ('a'); it must be a mapping"),
    ("pair", ("a",), "it must be a tuple of 2: a str, an int"),
    ("pair", ("a", "b"), "it[1] is a str ('b'); it must be an int"),
    ("pair", "ab", "it is a str ('ab'); it must be a tuple"),
    ("many", (1, None), "it[1] is None; it must be an int"),
    ("choice", "up", "it is 'up'; it must be 'left' or 'right'"),
    ("choice", 1, "it is an int (1); it must be 'left' or 'right'"),
    ("call", 5, "it is an int (5); it must be a function of 2 arguments"),
    ("call", len, "it must be a function of 2 arguments"),
    ("call", later, "it must be a function of 2 arguments, neither async nor a generator"),
    ("call", one_by_one, "it must be a function of 2 arguments, neither async nor a generator"),
    ("call", functools.partial(later), "neither async nor a generator"),
    ("call", CalledLater(), "neither async nor a generator"),
    ("any_call", "f", "it is a str ('f'); it must be a function"),
    ("error", ValueError, "it is the class ValueError; it must be a subclass of OSError"),
    ("error", OSError(), "it must be a subclass of OSError"),
    ("reader", "file", "it is a str ('file'); it must be a Reader"),
    ("reader", File, "it is the class File; it must be a Reader"),
    ("decimal", 1.5, "it is a float (1.5); it must be a Decimal"),
    ("some", (), "it is (); it must be something that is not empty"),
]


@pytest.mark.parametrize("method", GOOD)
def test_what_fits_the_annotation_is_passed_on(method):
    for value in GOOD[method]:
        given = getattr(Shop(), method)(value)
        given = given[0] if method == "anything" else given
        assert given is value or given == value or str(given) == value.__fspath__()


@pytest.mark.parametrize(
    ("method", "value", "message"), BAD, ids=[f"{one[0]}-{index}" for index, one in enumerate(BAD)]
)
def test_what_does_not_fit_is_refused_and_named(method, value, message):
    for call in (lambda: getattr(Shop(), method)(value), lambda: getattr(Shop(), method)(it=value)):
        with pytest.raises(ConfigError) as error:
            call()
        assert f"Shop.{method}(): " in error.value.message
        assert message in error.value.message


@pytest.mark.parametrize("value", [{1: 2}, {"a": "b"}])
def test_keys_and_values_of_mappings_are_looked_at(value):
    with pytest.raises(ConfigError, match=r"it('s key|\['a'\]) is an? (int|str)"):
        Shop().mapping(value)


def test_further_arguments_are_looked_at():
    assert Shop().anything(1, 2, 3, a="b") == (1, (2, 3), {"a": "b"})
    with pytest.raises(ConfigError, match=r"Shop.anything\(\): rest is a str"):
        Shop().anything(1, 2, "3")
    with pytest.raises(ConfigError, match="a is an int"):
        Shop().anything(1, a=2)


def test_numbers_of_numpy_arrive_as_python_has_them():
    shop = Shop()
    given = [shop.number(np.int32(3)), shop.real(np.float32(0.5)), shop.flag(np.bool_(True))]
    assert [(type(one), one) for one in given] == [(int, 3), (float, 0.5), (bool, True)]


class Side(enum.StrEnum):
    LEFT = "left"


def test_text_of_a_subclass_arrives_as_text():
    shop = Shop()
    given = [shop.text(Text("a")), shop.named(np.str_("a")), shop.named(Side.LEFT), *shop.columns([Text("a")])]
    given += next(iter(shop.mapping({Text("a"): np.int64(1)}).items()))
    assert [(type(one), one) for one in given] == [
        (str, "a"),
        (str, "a"),
        (str, "left"),
        (str, "a"),
        (str, "a"),
        (int, 1),
    ]
    assert [type(one) for one in shop.anything(1, np.int64(2), np.int8(3))[1]] == [int, int]


def test_other_objects_that_are_paths_arrive_as_paths():
    assert Shop().place(Elsewhere()) == Path("/somewhere/else")


def test_a_folder_stays_where_it_is_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    given = [Shop().folder("here"), Shop().folder(Path("~/there")), Shop().folder("./a:b")]
    assert given == [tmp_path / "here", Path("/home/ann/there"), tmp_path / "a:b"]


def test_a_value_that_is_required_says_what_it_must_be():
    assert require(Count, np.int64(3)) == 3
    for annotation, value, message in [(Count, -1, "at least 0"), (Place, Lost(), "a str or a path")]:
        with pytest.raises(ValueError, match=f"^it must be {message}$"):
            require(annotation, value)


def test_running_out_of_stack_is_not_the_values_fault():
    class Deep:
        def __fspath__(self) -> str:
            raise RecursionError

    with pytest.raises(RecursionError):
        Shop().place(Deep())


def test_methods_that_are_overridden_do_their_work_when_they_are_called():
    class Mine(Shop):
        def helper(self) -> Any:
            yield 1

    Mine.__mro__[1].__module__ = "weirflow.shop"
    try:
        require_plain_methods(Mine)
        Mine.text = one_by_one
        with pytest.raises(ConfigError, match=r"Mine\.text\(\) is async or a generator"):
            require_plain_methods(Mine)
    finally:
        Shop.__module__ = __name__


def test_constructors_are_checked():
    assert Shop("corner", history=0).history == 0
    with pytest.raises(ConfigError, match=r"^\[CONFIG_INVALID\] Shop\(\): history is -1; it must be at least 0\.$"):
        Shop(history=-1)


def test_a_subclass_is_called_by_its_own_name():
    class Kiosk(Shop):
        pass

    with pytest.raises(ConfigError, match=r"Kiosk\(\): name is None"):
        Kiosk(None)
    with pytest.raises(ConfigError, match=r"Kiosk\.count\(\): it is -1"):
        Kiosk().count(-1)


def test_dataclasses_functions_and_class_methods_are_checked():
    @checked
    @dataclass(frozen=True)
    class Order:
        amount: Positive

        @classmethod
        def of(cls, text: str) -> Order:
            return cls(len(text))

        @staticmethod
        def twice(number: int) -> int:
            return 2 * number

    @checked
    def buy(amount: Annotated[int, AtMost(3)]) -> int:
        return amount

    assert (Order(2).amount, Order.of("abc").amount, Order.twice(4), buy(3)) == (2, 3, 8, 3)
    for call, message in [
        (lambda: Order(0), r"Order\(\): amount is 0"),
        (lambda: Order.of(b"abc"), r"Order\.of\(\): text is bytes"),
        (lambda: Order.twice("4"), r"twice\(\): number is a str"),
        (lambda: buy(4), r"buy\(\): amount is 4; it must be at most 3"),
    ]:
        with pytest.raises(ConfigError, match=message):
            call()


def test_names_and_numbers_of_arguments_stay_pythons_own_business():
    with pytest.raises(TypeError, match="unexpected keyword argument 'that'"):
        Shop().count(that=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'it'"):
        Shop().count()
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        Shop().count(1, 2)


def test_a_secret_is_not_shown():
    for wrong in (b"hunter2", "zhunter2"):
        with pytest.raises(ConfigError) as error:
            Shop().password(wrong)
        assert "hunter2" not in str(error.value)


def test_the_hint_of_a_signature_is_in_the_error():
    with pytest.raises(ConfigError) as error:
        Shop().uri("")
    assert error.value.hint == "use a folder"


def test_long_values_and_ones_that_cannot_be_shown_do_not_spoil_the_error():
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    for wrong in (Shy(), list(range(100_000)), {"a": "x" * 100_000}):
        with pytest.raises(ConfigError) as error:
            Shop().count(wrong)
        assert len(str(error.value)) < 300


def test_the_error_pickles():
    with pytest.raises(ConfigError) as error:
        Shop().count(-1)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_the_error_begins_at_the_call():
    with pytest.raises(ConfigError) as error:
        Shop().count(-1)
    assert error.value.__suppress_context__


def test_the_signature_stays_as_it_was_written():
    assert str(inspect.signature(Shop.count)) == "(self, it: 'Count') -> 'Any'"
    assert Shop.count.__wrapped__.__name__ == "count"


def test_types_that_are_imported_for_type_checkers_only_are_found():
    assert rules_of(Shop.decimal).unknown == ()


def test_what_cannot_be_resolved_lets_anything_through():
    def odd(it: Undefined) -> Any:  # noqa: F821 - the point of the test
        return it

    assert checked(odd)(5) == 5
    assert rules_of(checked(odd)).unknown == ("it",)


def test_what_is_not_checked_has_no_rules():
    assert rules_of(len) is None
