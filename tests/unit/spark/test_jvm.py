import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.errors import SessionError
from weirflow.spark.launch.java import Java, find_java
from weirflow.spark.launch.jvm import Jvm, JvmOptions, _command, _escape

HOSTILE = [
    "plain",
    "with space",
    "  leading",
    "trailing  ",
    "a=b",
    "a:b",
    "#comment",
    "!comment",
    "back\\slash",
    "tab\there",
    "line\nbreak",
    "return\rhere",
    "grüße",
    "東京",
    "🚰",
    "quote\"'`",
    "\\u0041",
    "ends with \\",
    "\0",
    "\x7f",
]
PRINTER = """
import java.util.*; import java.io.*; import java.nio.charset.StandardCharsets;
public class Printer { public static void main(String[] a) throws Exception {
  Properties p = new Properties();
  try (Reader r = new InputStreamReader(new FileInputStream(a[0]), StandardCharsets.UTF_8)) { p.load(r); }
  for (String k : p.stringPropertyNames()) {
    StringBuilder s = new StringBuilder();
    for (byte b : k.getBytes("UTF-8")) s.append(String.format("%02x", b));
    s.append(' ');
    for (byte b : p.getProperty(k).getBytes("UTF-8")) s.append(String.format("%02x", b));
    System.out.println(s);
  } } }
"""


def unescape(text):
    """What java.util.Properties reads, by its documentation."""
    pieces = re.sub(
        r"\\(u[0-9a-f]{4}|.)",
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) > 1 else match[1],
        text,
        flags=re.DOTALL,
    )
    return pieces.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escaped_text_reads_back(text):
    escaped = _escape(text)
    assert escaped.isascii()
    assert "\n" not in escaped
    assert "\r" not in escaped
    assert re.search(r"(?<!\\)(?:\\\\)*[=: ]", escaped) is None  # nothing ends a key early
    assert unescape(escaped) == text


def test_java_reads_what_we_write(tmp_path):
    # By Spark's own reader, one JVM for all: java.util.Properties.
    if not Path(find_java().executable).resolve().with_name("javac").exists():
        pytest.skip("needs a JDK; the property above holds for the documented format")
    (tmp_path / "Printer.java").write_text(PRINTER)
    expected = {f"spark.{index}.{text}": text for index, text in enumerate(HOSTILE)}
    file = tmp_path / "spark.properties"
    file.write_text("".join(f"{_escape(name)}={_escape(value)}\n" for name, value in expected.items()))
    command = [find_java().executable, tmp_path / "Printer.java", file]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    pairs = [line.split(" ") for line in printed.splitlines()]
    assert {bytes.fromhex(name).decode(): bytes.fromhex(value).decode() for name, value in pairs} == expected


def options(tmp_path, **changes):
    home = tmp_path / "home"
    (home / "jars").mkdir(parents=True, exist_ok=True)
    for name in ("b.jar", "a.jar"):
        (home / "jars" / name).touch()
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    defaults = {
        "java": Java(Path("/usr/bin/java"), 'openjdk version "17"', 17),
        "spark_home": home,
        "conf": {},
        "memory": "1g",
        "scratch": scratch,
        "cache_dir": tmp_path / "cache",
        "class_archive": False,
        "worker_python": Path("/usr/bin/python3"),
        "loopback": True,
    }
    return JvmOptions(**{**defaults, **changes})


def test_secrets_are_in_a_private_file_and_not_on_the_command_line(tmp_path):
    command = _command(options(tmp_path, conf={"spark.authenticate.secret": "canary"}), None)
    assert "canary" not in " ".join(command)
    file = Path(command[command.index("--properties-file") + 1])
    assert file.read_text() == "spark.authenticate.secret=canary\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_command_line(tmp_path):
    conf = {
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": "-Da=1 -Db='x y'",
        "spark.driver.extraClassPath": "/extra/*",
    }
    command = _command(options(tmp_path, conf=conf), None)
    assert command[:2] == ["/usr/bin/java", "-Xmx3g"]
    assert {"-Da=1", "-Db=x y"} <= set(command)
    jars = command[command.index("-cp") + 1].split(":")
    assert jars[0] == "/extra/*"
    assert [Path(jar).name for jar in jars[-2:]] == ["a.jar", "b.jar"]
    assert command[-1] == "pyspark-shell"


def fake_java(folder, script):
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Java(program, 'openjdk version "17"', 17)


def test_a_jvm_that_dies_as_it_starts_says_why(tmp_path):
    java = fake_java(tmp_path, "echo 'WARNING: noise' >&2; echo 'Error: Could not reserve enough space' >&2; exit 3")
    with pytest.raises(SessionError, match=r"exited with code 3[\s\S]*Could not reserve") as caught:
        Jvm(options(tmp_path, java=java))
    assert "noise" not in str(caught.value)


def test_a_jvm_is_told_where_to_answer_and_ends_with_its_stdin(tmp_path, capfd):
    answer = r"printf '\000\000\004\322\000\000\000\006secret' > \"$_PYSPARK_DRIVER_CONN_INFO_PATH.part\""
    java = fake_java(
        tmp_path,
        f'eval "{answer}"; mv $_PYSPARK_DRIVER_CONN_INFO_PATH.part $_PYSPARK_DRIVER_CONN_INFO_PATH\n'
        "cat >/dev/null; echo 'bye' >&2",
    )
    jvm = Jvm(options(tmp_path, java=java))
    assert (jvm.port, jvm.secret, jvm.exit_code) == (1234, "secret", None)
    assert not (tmp_path / "scratch" / "gateway").exists()  # it held the secret
    jvm.forward_stderr = True
    jvm.close()
    assert jvm.exit_code == 0
    assert jvm.tail() == "bye"
    assert capfd.readouterr().err == "bye\n"
