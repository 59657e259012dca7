"""``weirflow flow``: the files of durable flows, looked at and repaired without Spark."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import FAILED, reported
from weirflow.cli.options import ReportOptions, spread
from weirflow.cli.output import Stdout, render_table
from weirflow.errors import EngineMissing, ObjectNotFound, WeirflowError

if TYPE_CHECKING:
    from weirflow.ivm.durability.checkup import Checkup
    from weirflow.ivm.flow.folder.repair import Repair
    from weirflow.ivm.sharded.checkup import ShardsCheckup

NO_FLOW = 2
"""The exit code for a path at which there is no flow."""
_UNTOUCHED = "Cancelled; nothing was changed."
_AGAIN = "Cancelled; nothing is deleted, and the same command goes on."
_ON_SPARK = "Some of its views are recomputed by Spark: it opens in a Session, and makes its checkpoint there."

flow = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Place = Annotated[
    str, typer.Argument(help="The folder of the flow; for a flow in shards, a folder or a storage URI.", metavar="PATH")
]


@flow.callback()
def _flow() -> None:
    """Check the files of a durable flow, and repair them.

    [bold]Examples[/bold]

      weirflow flow check data/flows/shop

      weirflow flow repair data/flows/shop
    """


def check(*, path: Place, report: ReportOptions) -> None:
    """Read every file of a flow with its checksums, and say what is whole. Changes nothing.

    Exits with 0 if everything is whole, 1 if something is damaged or missing, 2 if there is no flow.
    The flow may be open in another process.

    [bold]Examples[/bold]

      weirflow flow check data/flows/shop

      weirflow flow check data/flows/shop --json
    """
    with reported(report, interrupted=_UNTOUCHED, codes={ObjectNotFound: NO_FLOW}):
        found = _checked(path)
        if report.json:
            _print(json.dumps(_document(found), ensure_ascii=False))
        else:
            _print(_shown(found))
        if not found.is_whole:
            raise typer.Exit(FAILED)


def repair(
    *,
    path: Place,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    report: ReportOptions,
) -> None:
    """Bring a damaged flow back to its last whole epoch, and say what is lost.

    Damaged files are moved to damaged-TIME in the flow's folder, and never deleted. Then the flow is opened and makes
    a checkpoint. A flow that is whole is left as it is. The flow must not be open in another process.

    Exits with 0 if the flow is whole now, 1 if it is not, 2 if there is no flow.

    [bold]Examples[/bold]

      weirflow flow repair data/flows/shop --dry-run

      weirflow flow repair data/flows/shop
    """
    with reported(report, interrupted=_UNTOUCHED if dry_run else _AGAIN, codes={ObjectNotFound: NO_FLOW}):
        done, opens = _repaired(path, dry_run=dry_run)
        if report.json:
            _print(json.dumps({**_outcome(done), "dry_run": dry_run}, ensure_ascii=False))
        else:
            _print("\n".join([str(done), *([] if opens else [_ON_SPARK])]))
        if dry_run and not done.was_whole:
            raise typer.Exit(FAILED)


for command_name, command in (("check", check), ("repair", repair)):
    flow.command(command_name)(spread(command))


# Their modules import pyarrow, and help does without.


def _is_in_shards(path: str) -> bool:
    return "://" in path or (Path(path) / "commits").is_dir()


def _checked(path: str) -> "Checkup | ShardsCheckup":
    from weirflow.checkpoint import open_checkpoint_storage  # noqa: PLC0415
    from weirflow.ivm.durability.checkup import check_flow  # noqa: PLC0415
    from weirflow.ivm.sharded.checkup import check_shards  # noqa: PLC0415

    return check_shards(open_checkpoint_storage(path)) if _is_in_shards(path) else check_flow(Path(path))


def _repaired(path: str, *, dry_run: bool) -> "tuple[Repair, bool]":
    """What was done, and whether the flow has been opened, as far as it has to be."""
    from weirflow.checkpoint import open_checkpoint_storage  # noqa: PLC0415
    from weirflow.ivm.flow.folder.repair import repair_flow  # noqa: PLC0415
    from weirflow.ivm.sharded.checkup import repair_shards  # noqa: PLC0415

    if _is_in_shards(path):
        return repair_shards(open_checkpoint_storage(path), dry_run=dry_run), True
    done = repair_flow(Path(path), dry_run=dry_run)
    return done, dry_run or done.was_whole or _opens(Path(path), done)


def _opens(path: Path, done: "Repair") -> bool:
    """Open the flow and make a checkpoint; False if it takes Spark to do so."""
    from weirflow.ivm.flow import IncrementalFlow  # noqa: PLC0415

    try:
        with IncrementalFlow(done.name or path.name, path=path) as opened:
            opened.checkpoint()
    except WeirflowError as error:
        if isinstance(error, EngineMissing) or isinstance(error.__cause__, EngineMissing):
            return False
        raise
    return True


def _shown(found: "Checkup | ShardsCheckup") -> str:
    rows = [(file.name, file.holds, file.trouble or "whole") for file in found.files]
    lines = [render_table(("file", "holds", "state"), rows).rstrip("\n"), _summary(found)]
    if found.is_open:
        lines.append("It is open in another process, so what that process is writing may be missing here.")
    if not found.is_whole:
        lines.append(f"'weirflow flow repair {found.path}' opens it at epoch {found.epoch}.")
    return "\n".join(lines)


def _summary(found: "Checkup | ShardsCheckup") -> str:
    text = str(found)
    return f"{text[0].upper()}{text[1:]}."


def _document(found: "Checkup | ShardsCheckup") -> dict[str, Any]:
    return {
        "path": str(found.path),
        "whole": found.is_whole,
        "epoch": found.epoch,
        "open": found.is_open,
        "lost": _lost(found),
        "files": [{"name": file.name, "holds": file.holds, "trouble": file.trouble} for file in found.files],
    }


def _outcome(done: "Repair") -> dict[str, Any]:
    return {
        "epoch": done.epoch,
        "was_whole": done.was_whole,
        "lost": _lost(done),
        "aside": None if done.aside is None else str(done.aside),
        "moved": list(done.moved),
        "rewritten": list(done.rewritten),
        "sinks_ahead": list(done.ahead),
        "sinks_anew": list(done.anew),
    }


def _lost(found: "Checkup | ShardsCheckup | Repair") -> dict[str, Any] | None:
    lost = found.lost
    return None if lost is None else {f"{lost.what}s": lost.records, "epochs": lost.epochs}


def _print(text: str) -> None:
    stdout = Stdout()
    stdout.write(f"{text}\n")
    stdout.flush()
