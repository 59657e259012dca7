"""``FlowSql``: all that a Session's SQL has to do with flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from weirflow.errors import QueryError, TableNotFound
from weirflow.flows.registry import FlowRegistry
from weirflow.flows.seen import SeenFlows
from weirflow.flows.sql.shown_relations import ShownRelations, words
from weirflow.flows.sql.statements import FlowStatements
from weirflow.sql.statements.parameters import with_literals

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.host import FlowSession, Params
    from weirflow.ivm.flow.outputs.subscription import Subscription
    from weirflow.sql.statements.kinds import StatementKind

T = TypeVar("T")


class FlowSql:
    """The flows of a Session, and what SQL reads of them and says about them."""

    def __init__(self, session: FlowSession) -> None:
        self._session = session
        self.flows = FlowRegistry(session)
        self._shown = ShownRelations(session, self.flows)
        self._statements = FlowStatements(session, self.flows, self._shown)

    def run(
        self,
        statement: str,
        kind: StatementKind,
        params: Params | None,
        *,
        sees: Callable[[str], bool] | None = None,
    ) -> pa.Table | None:
        """What a statement about flows, of the kind that it is, returns; None if it is Spark's to run.

        Flows that ``sees`` does not let it see are not there for it.
        """
        statements = self._statements
        if sees is not None:
            statements = FlowStatements(self._session, SeenFlows(self.flows, sees), self._shown)
        if not statements.has(kind):
            return None
        if params is None:
            return statements.run(statement, kind)
        filled = with_literals(statement, params)
        try:
            return statements.run(filled.text, kind)
        except QueryError as error:
            error.position = filled.position_in(statement, error.position)
            raise

    def subscribe(self, statement: str, params: Params | None) -> Subscription:
        """What ``SUBSCRIBE TO`` says: the changes of a view."""
        if params is None:
            return self._statements.subscribe(statement)
        filled = with_literals(statement, params)
        try:
            return self._statements.subscribe(filled.text)
        except QueryError as error:
            error.position = filled.position_in(statement, error.position)
            raise

    def shows(self, table: str) -> bool:
        """Whether a temporary view is what a query sees of a flow."""
        return self._shown.has(table)

    def flow_of(self, table: str) -> str | None:
        """The name of the flow whose source or view a temporary view shows; None if it shows none."""
        return self._shown.flow_of(table)

    def reading(
        self,
        query: str,
        run: Callable[[str], T],
        *,
        repeats: bool,
        sees: Callable[[str], bool] | None = None,
    ) -> T:
        """Run what may read sources and views of flows, after they are made tables; it is given the text to run.

        Flows that a durable Session keeps are opened if a table is not found, and it is run again. What ``repeats`` may
        be run again whenever others' statements have changed what it sees meanwhile. Flows that ``sees`` does not let
        it see are not there for it.
        """
        try:
            return self._shown.reading(query, run, repeats=repeats, sees=sees)
        except TableNotFound as error:
            if not self.flows.open_kept(words(query)):
                error.hint = error.hint or self.flows.unopened
                raise
        return self._shown.reading(query, run, repeats=repeats, sees=sees)
