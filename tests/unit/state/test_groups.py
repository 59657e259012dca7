import pytest

from weirflow.errors import ConfigError
from weirflow.state import KeyGroupRange, group_ranges, key_group
from weirflow.state.encoding.groups import range_of
from weirflow.state.encoding.keys import encode_key


def test_the_group_of_a_key_never_changes():
    keys = [0, 1, "ann", "bob", ("ann", 7), None]
    assert [key_group(encode_key(key)) for key in keys] == GOLDEN
    assert key_group(b"", 1) == 0


GOLDEN = [112, 125, 28, 73, 100, 27]


@pytest.mark.parametrize("groups", [1, 7, 128])
def test_ranges_have_every_group_once(groups):
    for parallelism in range(1, groups + 1):
        ranges = group_ranges(parallelism, groups)
        assert [group for one in ranges for group in range(one.first, one.end)] == list(range(groups))
        assert [range_of(group, parallelism, groups) for group in range(groups)] == [
            part for part, one in enumerate(ranges) for _ in range(one.first, one.end)
        ]
        sizes = {one.end - one.first for one in ranges}
        assert max(sizes) - min(sizes) <= 1


def test_keys_are_spread():
    counts = [0] * 128
    for number in range(12_800):
        counts[key_group(encode_key(number))] += 1
    assert min(counts) > 50
    assert max(counts) < 200


def test_what_two_ranges_have_in_common():
    assert KeyGroupRange(0, 10).common(KeyGroupRange(5, 20)) == KeyGroupRange(5, 10)
    assert KeyGroupRange(0, 10).common(KeyGroupRange(10, 20)) is None


@pytest.mark.parametrize(("parallelism", "groups"), [(0, 128), (129, 128), (1, 0), (1, 40_000)])
def test_a_parallelism_that_cannot_be(parallelism, groups):
    with pytest.raises(ConfigError):
        group_ranges(parallelism, groups)
