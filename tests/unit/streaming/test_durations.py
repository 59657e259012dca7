"""Lengths of time as users write them."""

from datetime import timedelta

import pytest

from weirflow.errors import ConfigError
from weirflow.streaming.durations import interval_ms, milliseconds, spark_interval
from weirflow.streaming.trigger import Trigger


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (60_000, "60000 milliseconds"),
        (60_000.0, "60000 milliseconds"),
        (timedelta(seconds=1.5), "1500 milliseconds"),
        ("10 minutes", "10 minutes"),
    ],
)
def test_lengths_become_words(length, words):
    assert spark_interval(length, "gap") == words


@pytest.mark.parametrize("length", [0, -1, 0.5, True, timedelta(microseconds=1), " "])
def test_what_is_no_length_is_refused(length):
    with pytest.raises(ConfigError, match="The gap is"):
        spark_interval(length, "gap")


def test_zero_may_be_allowed():
    assert milliseconds(0, "watermark", allow_zero=True) == 0


@pytest.mark.parametrize(
    ("words", "ms"),
    [("10 minutes", 600_000), ("1 hour 30 Minutes", 5_400_000), ("1 week", 604_800_000), ("5 milliseconds", 5)],
)
def test_words_become_milliseconds(words, ms):
    assert interval_ms(words) == ms


@pytest.mark.parametrize("words", ["soon", "10", "3 months", "1 hour and a half"])
def test_words_without_a_fixed_length_are_refused(words):
    with pytest.raises(ConfigError, match="not a number of milliseconds"):
        interval_ms(words)


def test_triggers_say_what_they_are():
    assert [str(one) for one in (Trigger.once(), Trigger.available_now(), Trigger.processing_time(0))] == [
        "once",
        "available now",
        "as soon as the last batch is done",
    ]
    assert str(Trigger.continuous(timedelta(seconds=1))) == "continuous, saved every 1000 ms"
    with pytest.raises(ConfigError, match="time between checkpoints"):
        Trigger.continuous(0)
