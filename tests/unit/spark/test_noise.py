"""Of what the JVM prints to stderr users see what they can do something about."""

import pytest

from weirflow.spark.launch.noise import StderrNoise

CLOSED = 'Exception in thread "stateConnectionListenerThread" java.nio.channels.ClosedByInterruptException'
FRAMES = [
    "\tat java.base/java.nio.channels.spi.AbstractInterruptibleChannel.end(AbstractInterruptibleChannel.java:199)",
    "\tat java.base/java.lang.Thread.run(Thread.java:840)",
]
STARTING = "Starting Streaming TransformWithStateInPandas Python worker. "


def shown(lines):
    noise = StderrNoise()
    return [line for line in lines if not noise.has(line)]


@pytest.mark.parametrize(
    ("line", "noise"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", True),
        ("Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8", True),
        ("Picked up _JAVA_OPTIONS: -Xmx1g", True),
        ("OpenJDK 64-Bit Server VM warning: Sharing is only supported for boot loader classes", True),
        ("12:00:00 WARN TaskSetManager: Lost task 0.0", False),
        ("Exception in thread main java.lang.OutOfMemoryError", False),
        ("java.lang.Error: WARNING: not noise here", False),
        (FRAMES[0], False),
        ("", False),
        (CLOSED, True),
        (CLOSED.replace("stateConnectionListenerThread", "main"), False),
        (CLOSED.replace("java.nio.channels.ClosedByInterruptException", "java.lang.OutOfMemoryError"), False),
    ],
)
def test_noise_is_told_from_news(line, noise):
    assert StderrNoise().has(line) is noise


def test_a_trace_that_is_noise_ends_where_its_frames_end():
    news = ["12:00:00 ERROR Executor: Exception in task 0.0", "java.lang.Error: news", FRAMES[1], ""]
    assert shown([CLOSED, *FRAMES, *news, CLOSED, *FRAMES, CLOSED, *FRAMES]) == news


def test_workers_that_start_take_an_empty_line_each():
    assert shown([STARTING, STARTING, "", "", "", "news"]) == ["", "news"]
