"""The tables of Nexmark: its three kinds of events, and the side input that q13 looks things up in."""

from __future__ import annotations

from weirflow.sql.typing.type_syntax import parse_ddl

SCHEMAS = {
    name: parse_ddl(ddl)
    for name, ddl in {
        "person": (
            "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
            "dateTime TIMESTAMP, extra STRING"
        ),
        "auction": (
            "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
            "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
        ),
        "bid": (
            "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING"
        ),
        "side_input": "key BIGINT, value STRING",
    }.items()
}
