"""What every checkpoint storage must do: one suite, run against each of them."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from weirflow.errors import ConfigError, ObjectChanged, ObjectExists, ObjectNotFound, UnsupportedError

MB = 1024 * 1024

BAD_NAMES = {
    "empty": "",
    "root": "/",
    "absolute": "/etc/passwd",
    "trailing slash": "a/",
    "empty segment": "a//b",
    "dot": ".",
    "dot segment": "a/./b",
    "parent": "..",
    "parent first": "../a",
    "parent inside": "a/../../b",
    "parent last": "a/..",
    "three dots": "a/...",
    "final dot": "a./b",
    "backslash": "a\\b",
    "windows parent": "..\\..\\a",
    "nul": "a\0b",
    "newline": "a\nb",
    "delete": "a\x7fb",
    "c1 control": "a\x85b",
    "line separator": "a\u2028b",
    "right-to-left override": "a\u202eb",
    "zero width": "a\u200bb",
    "lone surrogate": "a\udc80b",
    "long segment": "a" * 256,
    "long segment in bytes": "é" * 128,
    "long name": "/".join(["a" * 200] * 6),
    "reserved": ".weirflow-tmp/x",
    "reserved in capitals": ".WEIRFLOW-TMP/x",
    "not a string": b"a",
}

ODD_NAMES = [
    " lead",
    "trail ",
    "a b",
    "percent%2Fslash",
    "100%",
    "q?x=1&y=2#z",
    "plus+tilde~",
    "{a}[b]^`|<>",
    "quote'\"",
    "x:y;z,=@!$*()",
    ".hidden/file",
    "..a/b..c",
    "~",
    "-rf",
    "ünï/日本/😀",
    "e\u0301",
    "s" * 255,
]

DATA = {
    "bytes": (lambda: b"plain", b"plain"),
    "empty": (lambda: b"", b""),
    "bytearray": (lambda: bytearray(b"mutable"), b"mutable"),
    "memoryview": (lambda: memoryview(b"0123456789")[3:6], b"345"),
    "strided": (lambda: memoryview(b"0123456789")[::2], b"02468"),
    "wide items": (lambda: memoryview(b"01234567").cast("I"), b"01234567"),
    "iterable": (lambda: iter([b"one", bytearray(b"two"), memoryview(b"three")]), b"onetwothree"),
    "empty iterable": (lambda: iter([]), b""),
    "empty chunks": (lambda: [b"", b"x", b"", b""], b"x"),
    "several parts": (
        lambda: (bytes([i]) * MB for i in range(20)),
        b"".join(bytes([i]) * MB for i in range(20)),
    ),
    "one big chunk": (lambda: b"z" * (17 * MB), b"z" * (17 * MB)),
}


def listed(storage, prefix=""):
    return [(info.name, info.size) for info in storage.list(prefix)]


def race(contenders, act):
    """Run act(0..n-1) at once; what each returned, or the error it raised."""
    start = threading.Barrier(contenders)

    def contend(number):
        start.wait()
        try:
            return act(number)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            return error

    with ThreadPoolExecutor(contenders) as pool:
        return list(pool.map(contend, range(contenders)))


class StorageContract:
    """Subclasses give a fixture ``storage``: an empty storage of the kind to test."""

    @pytest.mark.parametrize("kind", DATA)
    @pytest.mark.parametrize("method", ["put", "put_if_absent"])
    def test_what_is_put_is_what_is_read(self, storage, method, kind):
        make, expected = DATA[kind]
        info = getattr(storage, method)("folder/object", make())
        assert storage.get("folder/object") == expected
        assert (info.name, info.size) == ("folder/object", len(expected))
        assert info.version == storage.head("folder/object").version

    def test_put_replaces(self, storage):
        first = storage.put("a", b"first, longer")
        second = storage.put("a", b"second")
        assert storage.get("a") == b"second"
        assert first.version != second.version

    def test_put_if_absent_leaves_the_earlier_object(self, storage):
        storage.put_if_absent("a", b"first")
        with pytest.raises(ObjectExists) as caught:
            storage.put_if_absent("a", b"second")
        assert storage.get("a") == b"first"
        assert caught.value.uri == f"{storage.uri.rstrip('/')}/a"

    def test_put_if_absent_works_again_after_delete(self, storage):
        storage.put_if_absent("a", b"first")
        storage.delete("a")
        storage.put_if_absent("a", b"second")
        assert storage.get("a") == b"second"

    def test_put_if_absent_has_one_winner_of_sixteen(self, storage):
        for number in range(10):
            name = f"epochs/{number}"
            outcomes = race(16, lambda i, name=name: storage.put_if_absent(name, [bytes([i])] * 1000) and i)
            winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
            losers = [type(outcome) for outcome in outcomes if not isinstance(outcome, int)]
            assert (len(winners), losers) == (1, [ObjectExists] * 15)
            assert storage.get(name) == bytes([winners[0]]) * 1000

    def test_put_if_match(self, storage):
        first = storage.put("a", b"first")
        if not storage.supports_conditional_update:
            with pytest.raises(UnsupportedError, match="put_if_absent"):
                storage.put_if_match("a", b"second", first.version)
            assert storage.get("a") == b"first"
            return
        second = storage.put_if_match("a", b"second", first.version)
        with pytest.raises(ObjectChanged):
            storage.put_if_match("a", b"third", first.version)
        assert storage.get("a") == b"second"
        assert storage.head("a").version == second.version
        storage.delete("a")
        with pytest.raises(ObjectChanged):
            storage.put_if_match("a", b"third", second.version)
        assert not storage.exists("a")

    def test_put_if_match_loses_no_update(self, storage):
        if not storage.supports_conditional_update:
            pytest.skip("local files have no conditional update")
        storage.put("counter", b"0")

        def add_five(_):
            done = 0
            while done < 5:
                seen = storage.head("counter").version
                value = int(storage.get("counter"))
                try:
                    storage.put_if_match("counter", str(value + 1).encode(), seen)
                    done += 1
                except ObjectChanged:
                    continue

        assert race(4, add_five) == [None] * 4
        assert storage.get("counter") == b"20"

    def test_an_absent_object(self, storage):
        for read in (
            lambda: storage.get("absent"),
            lambda: storage.map("absent"),
            lambda: storage.get_range("absent", 0, 1),
            lambda: storage.get_range("absent", 0, 0),
            lambda: list(storage.stream("absent")),
            lambda: storage.head("absent/below"),
        ):
            with pytest.raises(ObjectNotFound):
                read()
        assert not storage.exists("absent")
        storage.delete("absent")
        storage.delete("absent/below")
        assert listed(storage) == []

    @pytest.mark.parametrize("content", [b"", b"0123456789"])
    @pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 4), (3, 4), (8, 5), (9, 1), (10, 1), (10**12, 10**12)])
    def test_ranges_are_slices(self, storage, content, start, length):
        storage.put("a", content)
        assert storage.get_range("a", start, length) == content[start : start + length]

    @pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1)])
    def test_a_negative_range_is_refused(self, storage, start, length):
        storage.put("a", b"0123456789")
        with pytest.raises(ConfigError):
            storage.get_range("a", start, length)

    @pytest.mark.parametrize("chunk_size", [1000, 64 * 1024, 100 * MB])
    def test_stream_in_bounded_chunks(self, storage, chunk_size):
        content = bytes(range(256)) * 1000
        storage.put("a", content)
        chunks = list(storage.stream("a", chunk_size))
        assert b"".join(chunks) == content
        assert all(0 < len(chunk) <= chunk_size for chunk in chunks)

    def test_streaming_nothing(self, storage):
        storage.put("a", b"")
        assert list(storage.stream("a")) == []
        with pytest.raises(ConfigError):
            storage.stream("a", 0)

    def test_list_is_sorted_by_whole_name(self, storage):
        names = ["a-b", "a/b", "a.b/c", "a0", "A", "é", "z/1", "z/10", "z/2", "\U0001f600", "\ufb01"]
        for name in names:
            storage.put(name, name.encode())
        assert listed(storage) == [(name, len(name.encode())) for name in sorted(names)]

    def test_list_below_a_folder(self, storage):
        for name in ["epochs/1", "epochs/sub/2", "epochs2/3", "epoch", "epochs.4"]:
            storage.put(name, b"x")
        assert listed(storage, "epochs/") == [("epochs/1", 1), ("epochs/sub/2", 1)]
        assert listed(storage, "epochs/sub/") == [("epochs/sub/2", 1)]
        assert listed(storage, "nowhere/") == []
        assert listed(storage, "epoch/") == []

    @pytest.mark.parametrize("prefix", ["epochs", "/", "../", "a/../", "a//", "a\0/"])
    def test_a_prefix_is_a_folder(self, storage, prefix):
        with pytest.raises(ConfigError):
            storage.list(prefix)

    def test_listed_info_equals_head(self, storage):
        storage.put("a/b", b"x")
        assert list(storage.list()) == [storage.head("a/b")]
        assert storage.head("a/b").modified.tzinfo is not None

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_are_just_names(self, storage, name):
        storage.put(name, b"1")
        storage.put(name, b"22")
        with pytest.raises(ObjectExists):
            storage.put_if_absent(name, b"333")
        assert storage.get(name) == b"22"
        assert listed(storage) == [(name, 2)]
        storage.delete(name)
        assert listed(storage) == []

    @pytest.mark.parametrize("case", BAD_NAMES)
    def test_hostile_names_are_refused(self, storage, case):
        name = BAD_NAMES[case]
        for call in (
            lambda: storage.put(name, b""),
            lambda: storage.put_if_absent(name, b""),
            lambda: storage.put_if_match(name, b"", "version"),
            lambda: storage.get(name),
            lambda: storage.get_range(name, 0, 1),
            lambda: storage.stream(name),
            lambda: storage.head(name),
            lambda: storage.exists(name),
            lambda: storage.delete(name),
        ):
            with pytest.raises(ConfigError):
                call()
        assert listed(storage) == []

    @pytest.mark.parametrize("error", [ValueError("mine"), FileNotFoundError(2, "mine"), PermissionError(13, "mine")])
    @pytest.mark.parametrize("chunks", [1, 20])
    @pytest.mark.parametrize("method", ["put", "put_if_absent"])
    def test_an_error_of_the_iterable_passes_through(self, storage, method, chunks, error):
        def failing():
            for _ in range(chunks):
                yield b"x" * MB
            raise error

        with pytest.raises(type(error)) as caught:
            getattr(storage, method)("a", failing())
        assert caught.value is error
        assert listed(storage) == []

    @pytest.mark.parametrize("data", ["text", 7, None, [1, 2], [b"x", "y"]], ids=repr)
    def test_only_bytes_can_be_put(self, storage, data):
        for method in (storage.put, storage.put_if_absent):
            with pytest.raises(ConfigError, match="bytes"):
                method("a", data)
        assert listed(storage) == []

    def test_a_reader_sees_whole_objects_while_they_are_replaced(self, storage):
        sizes = [10, 300_000]
        storage.put("a", b"\0" * sizes[0])
        done = threading.Event()

        def act(number):
            if number == 0:
                for i in range(40):
                    storage.put("a", bytes([i]) * sizes[i % 2])
                done.set()
                return []
            torn = []
            while not done.is_set():
                content = storage.get("a")
                if len(content) not in sizes or len(set(content)) != 1:
                    torn.append(content)
            return torn

        assert race(3, act) == [[], [], []]

    def test_a_folder_can_become_an_object_once_it_is_empty(self, storage):
        storage.put("a/b/c", b"x")
        storage.delete("a/b/c")
        storage.put("a", b"y")
        assert listed(storage) == [("a", 1)]

    def test_puts_survive_deletes_that_empty_their_folder(self, storage):
        def act(number):
            for i in range(30):
                storage.put_if_absent(f"deep/er/{number}-{i}", b"x")
                storage.delete(f"deep/er/{number}-{i}")

        assert race(4, act) == [None] * 4
        assert listed(storage) == []

    def test_errors_name_the_object_and_pickle(self, storage):
        with pytest.raises(ObjectNotFound) as caught:
            storage.get("folder/absent")
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (copy.code, copy.uri, str(copy)) == ("OBJECT_NOT_FOUND", caught.value.uri, str(caught.value))
        assert "folder/absent" in copy.message
