"""The shop's flow in shards that is saved, and others that go on from there; a script that serves a ``Nursery``."""

from __future__ import annotations

from typing import Any

from support import shop_flow
from support.nursery import die_at, serve
from support.partitioned_shop import open_shop

from weirflow.errors import ObjectNotFound
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

OTHER_SHARDS = 2


def other(path: str, shards: int) -> PartitionedFlow:
    """The flow that goes on from the checkpoint, in another place."""
    return PartitionedFlow(f"{path}-other-{shards}", shards, InThisProcess(), name="other")


def live(order: dict[str, Any]) -> None:
    """Bring the shop to its tick, save it, and go on from there in as many and in other shards."""
    die_at(order)
    path = order["path"]
    with open_shop(path) as flow:
        shop_flow.declare(flow)
        for number in range(1, order["ticks"] + 1):
            if number > flow.epoch:
                shop_flow.tick(flow, number)
        flow.checkpoint(f"{path}-saved")
    for shards in (3, OTHER_SHARDS):
        with other(path, shards) as flow:
            if not flow.epoch:
                flow.restore(f"{path}-saved")
            assert flow.epoch == order["ticks"]


def newest(path: str) -> int:
    """The epoch of the newest checkpoint, as one in a process finds it; 0 if there is none."""
    from weirflow.ivm.flow import IncrementalFlow  # noqa: PLC0415 - the children need it not

    with IncrementalFlow("reader") as flow:
        try:
            flow.restore(f"{path}-saved")
        except ObjectNotFound:
            return 0
        return flow.epoch


if __name__ == "__main__":
    with open_shop("memory://warm") as flow:
        shop_flow.declare(flow)
        shop_flow.run(flow, 2)
    serve(live)
