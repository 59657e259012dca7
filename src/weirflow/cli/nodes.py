"""``weirflow nodes``: the servers, coordinators and executors' hosts that share a metadata store."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import ReportOptions, spread
from weirflow.cli.output import Stdout, render_table
from weirflow.cli.tokens import StoreOptions
from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from weirflow.metadata.nodes import Node

nodes = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

_COLUMNS = ("node", "kind", "state", "address", "heard of")


@nodes.callback()
def _nodes() -> None:
    """Show what runs where, and tell a server to drain.

    [bold]Examples[/bold]

      weirflow nodes list --path data

      weirflow nodes show web-1 --path data

      weirflow nodes drain web-1 --path data
    """


def list_(*, store: StoreOptions, report: ReportOptions) -> None:
    """List the nodes that have reported lately, and the leases that they hold.

    [bold]Examples[/bold]

      weirflow nodes list --path data
    """
    with reported(report):
        from weirflow.server.nodes import ServerNodes, lease_json, node_json  # noqa: PLC0415 - help does without

        with store.metadata() as metadata:
            looking = ServerNodes(metadata)
            found, leases = looking.all(), looking.leases()
        if report.json:
            document = {"nodes": [node_json(one) for one in found], "leases": [lease_json(one) for one in leases]}
            typer.echo(json.dumps(document))
            return
        Stdout().write(render_table(_COLUMNS, [_row(one) for one in found]))
        if leases:
            rows = [[one.name, one.owner, str(one.token), f"{one.left:.0f} s"] for one in leases]
            Stdout().write(render_table(("lease", "owner", "token", "left"), rows))


def show(
    *,
    name: Annotated[str, typer.Argument(help="The node's id.", metavar="NODE")],
    store: StoreOptions,
    report: ReportOptions,
) -> None:
    """Show one node: where it is, what it reports about itself, and which leases it holds.

    [bold]Examples[/bold]

      weirflow nodes show web-1 --path data
    """
    with reported(report):
        from weirflow.server.nodes import ServerNodes, lease_json, node_json  # noqa: PLC0415 - help does without

        with store.metadata() as metadata:
            looking = ServerNodes(metadata)
            node = next((one for one in looking.all() if one.id == name), None)
            if node is None:
                raise ConfigError(f"There is no node {name!r}.", hint="`weirflow nodes list` shows all nodes")
            leases = [one for one in looking.leases() if node.id.startswith(one.owner)]
        document = {**node_json(node), "leases": [lease_json(one) for one in leases]}
        if report.json:
            typer.echo(json.dumps(document))
            return
        for key, value in document.items():
            typer.echo(f"{key:<10} {json.dumps(value) if isinstance(value, dict | list) else value}")


def drain(
    *,
    name: Annotated[str, typer.Argument(help="The id of a server.", metavar="NODE")],
    store: StoreOptions,
    report: ReportOptions,
) -> None:
    """Tell a server to finish its current requests, accept no new ones, and end. It reacts within seconds.

    [bold]Examples[/bold]

      weirflow nodes drain web-1 --path data
    """
    with reported(report):
        from weirflow.server.nodes import ServerNodes, node_json  # noqa: PLC0415 - help does without

        with store.metadata() as metadata:
            node = ServerNodes(metadata).drain(name)
        typer.echo(json.dumps({"drains": node_json(node)}) if report.json else f"{node.id} was told to drain.")


for _name, _command in (("list", list_), ("show", show), ("drain", drain)):
    nodes.command(_name)(spread(_command))


def _row(node: "Node") -> list[str]:
    kind = str(node.info.get("kind", "coordinator" if "flow" in node.info else "node"))
    return [node.id, kind, node.state.value, node.address, f"{node.age:.0f} s ago"]
