"""Several processes write to one folder, and some of them are killed while they do."""

import hashlib
import subprocess
import sys
import textwrap

import pytest
from support.storage_contract import listed

from weirflow.checkpoint import open_checkpoint_storage

# Every object says who wrote it, how long it is and what its checksum is.
WRITER = textwrap.dedent("""
    import hashlib, sys
    from weirflow.checkpoint import open_checkpoint_storage
    from weirflow.errors import ObjectExists

    root, writer, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    storage = open_checkpoint_storage(root)

    def whole(number):
        body = (writer + str(number)).encode() * (1 + number * 7919 % 60_000)
        yield f"{writer} {len(body)} {hashlib.sha256(body).hexdigest()}\\n".encode()
        for start in range(0, len(body), 4096):
            yield body[start : start + 4096]

    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        storage.put("latest", whole(number))
        try:
            storage.put_if_absent(f"epochs/{number:06}", whole(number))
        except ObjectExists:
            continue
        print(number, flush=True)
""")


@pytest.fixture
def start_writer(tmp_path):
    children = []

    def start(writer, count):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "root"), writer, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        with child:
            child.kill()


def go(children):
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()


def writer_of(content: bytes) -> str:
    header, _, body = content.partition(b"\n")
    writer, size, checksum = header.decode().split()
    assert (len(body), hashlib.sha256(body).hexdigest()) == (int(size), checksum)
    return writer


def test_processes_that_put_the_same_names_have_one_winner_each(tmp_path, start_writer):
    children = {writer: start_writer(writer, 60) for writer in "abcd"}
    go(children.values())
    won = {writer: child.communicate(timeout=60)[0].split() for writer, child in children.items()}
    storage = open_checkpoint_storage(tmp_path / "root")
    assert sorted(number for numbers in won.values() for number in numbers) == sorted(map(str, range(60)))
    for writer, numbers in won.items():
        for number in numbers:
            assert writer_of(storage.get(f"epochs/{int(number):06}")) == writer


@pytest.mark.parametrize("acknowledged", [0, 1, 5, 17, 40])
def test_kill_9_leaves_whole_objects_only(tmp_path, start_writer, acknowledged):
    victims = {writer: start_writer(writer, 10**6) for writer in "ab"}
    go(victims.values())
    seen = [victims["a"].stdout.readline() for _ in range(acknowledged)]
    for victim in victims.values():
        victim.kill()
    won = {writer: victim.communicate()[0].split() for writer, victim in victims.items()}
    won["a"] += [line.strip() for line in seen]

    storage = open_checkpoint_storage(tmp_path / "root")
    owners = {info.name: writer_of(storage.get(info.name)) for info in storage.list()}
    for writer, numbers in won.items():
        for number in numbers:
            assert owners[f"epochs/{int(number):06}"] == writer

    survivor = start_writer("c", 100)
    go([survivor])
    survivor.communicate(timeout=60)
    after = {name: writer_of(storage.get(name)) for name, _ in listed(storage)}
    assert {name: after[name] for name in owners if name != "latest"} == {
        name: owner for name, owner in owners.items() if name != "latest"
    }
    assert after["latest"] == "c"
    assert {f"epochs/{number:06}" for number in range(100)} <= after.keys()
