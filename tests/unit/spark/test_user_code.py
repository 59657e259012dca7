"""What Spark says of a Python function that raised, in one sentence."""

import pickle

import pytest

from weirflow.spark.user_code import user_code_error

JAVA = """

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:"""
WORKER = '  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 3386, in main\n    process()\n'
HEAD = "Traceback (most recent call last):\n"


def frame(line, function, code):
    return f'  File "/ann/shop.py", line {line}, in {function}\n    {code}\n'


@pytest.mark.parametrize(
    "behind", ["", JAVA, "\n\nJVM stacktrace:\norg.apache.spark.SparkException", " SQLSTATE: 38000"]
)
@pytest.mark.parametrize(
    ("trace", "told"),
    [
        (
            HEAD
            + WORKER
            + frame(7, "half", "return 1 / amount")
            + "           ~~^~~~\nZeroDivisionError: division by zero",
            "half() raised ZeroDivisionError: division by zero at /ann/shop.py, line 7: return 1 / amount",
        ),
        (
            HEAD + WORKER + frame(9, "<lambda>", "f(row)") + frame(3, "f", "raise KeyError(1)") + "KeyError: 1",
            "A lambda function raised KeyError: 1 at /ann/shop.py, line 3: raise KeyError(1)",
        ),
        (
            HEAD
            + frame(5, "parse", "return loads(t)")
            + '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise JSONDecodeError()\n'
            + "json.decoder.JSONDecodeError: Expecting value",
            "parse() raised json.decoder.JSONDecodeError: Expecting value at /ann/shop.py, line 5: return loads(t)",
        ),
        (
            HEAD + frame(5, "first", "raise A") + "ValueError: one\n\nDuring handling of the above exception, another "
            "exception occurred:\n\n" + HEAD + frame(8, "second", "raise B") + "OSError: two\nwith a second line",
            "second() raised OSError: two at /ann/shop.py, line 8: raise B",
        ),
        (
            HEAD
            + frame(48, "on_element", "raise ValueError")
            + "ValueError: three is bad\n\nThe above exception was the "
            "direct cause of the following exception:\n\n" + HEAD + WORKER + "weirflow.errors.UserCodeError: "
            "[USER_CODE_FAILED] Boom.on_element for the key 3 raised ValueError: three is bad\n  hint: as before",
            "Boom.on_element for the key 3 raised ValueError: three is bad at /ann/shop.py, line 48: raise ValueError",
        ),
        (HEAD + WORKER + "MemoryError", "A Python function raised MemoryError"),
    ],
    ids=["udf", "lambda", "library", "handling", "process function", "no frame of theirs"],
)
def test_the_sentence_has_function_exception_and_line(trace, told, behind):
    error = user_code_error(f"An exception was thrown from the Python worker:\n{trace}{behind}")
    assert error.message == told
    assert "org.apache" not in error.traceback
    assert error.traceback.startswith(HEAD)
    assert pickle.loads(pickle.dumps(error)).traceback == error.traceback


def test_a_hint_of_ours_is_kept():
    trace = HEAD + WORKER + "weirflow.errors.UserCodeError: [USER_CODE_FAILED] It broke.\n  hint: mend it"
    assert (user_code_error(trace).message, user_code_error(trace).hint) == ("It broke.", "mend it")
