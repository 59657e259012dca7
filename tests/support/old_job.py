"""The process of a job of a version from before protocols had numbers: ``old_job.py FOLDER SOCKET``.

It imports nothing of Weirflow, and answers with the bytes that such a job answered with.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

KEY = b"k" * 32
RECORD: dict[str, Any] = {
    "job": "job",
    "pid": os.getpid(),
    "host": socket.gethostname(),
    "started": "2026-01-01T00:00:00Z",
    "socket": "",
    "queries": [
        {
            "info": {
                "name": "orders",
                "query_id": "1",
                "output_mode": "append",
                "trigger": "once",
                "sink": "parquet out",
                "delivery": "exactly-once",
                "because": "of its log",
                "checkpoint": "there",
                "restarts": "none",
            },
            "run_id": "2",
            "end": None,
        }
    ],
    "format": 1,
}
END = {"state": "stopped", "run_id": "2", "restarts": 0, "failure": None, "last": None}
# A status was pickled by the module that its class was in then, which has none of that name now.
ANSWERS = {
    "active": b"\x80\x04\x88.",
    "stop": b"\x80\x04N.",
    "status": b"ccopy_reg\n_reconstructor\n(cweirflow.streaming.query\nQueryStatus\nc__builtin__\nobject\nNtR.",
}


def main(folder: Path, address: str) -> None:
    """Answer until the query is stopped, by a question or by SIGTERM."""
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    (folder / "key").write_bytes(KEY)
    record = {**RECORD, "socket": address}
    _write(folder, record)

    def end(*_: object) -> None:
        _write(folder, {**record, "queries": [{**record["queries"][0], "end": END}]})
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    _say("listens")
    while True:
        client, _ = listener.accept()
        with Connection(client.detach()) as connection:
            deliver_challenge(connection, KEY)
            answer_challenge(connection, KEY)
            question = json.loads(connection.recv_bytes())
            _say(f"{question['query']} {question['member']} {question['arguments']}")
            connection.send_bytes(ANSWERS[question["member"]])
        if question["member"] == "stop":
            end()


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _write(folder: Path, record: dict[str, Any]) -> None:
    draft = folder / ".record"
    draft.write_text(json.dumps(record, indent=2))
    draft.replace(folder / "record.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
