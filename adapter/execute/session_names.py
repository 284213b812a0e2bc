"""What a session's variables make of names and of what asks for the session: made anew when one of them is set."""

from __future__ import annotations

from adapter.duck.session_facts import SessionFacts
from adapter.state.session_state import SessionState
from adapter.state.variables import SERVER_VERSION
from adapter.system.schemas import RELATIONS
from sql.objects.names import Names


def names_of(session: SessionState) -> Names:
    version, names = session.names
    if version != session.variables.version:
        names = Names(
            session.database, session.search_path, session.variable("cluster"), session.variable("timezone"),
            RELATIONS,
        )  # fmt: skip
        session.names = session.variables.version, names
    return names


def facts_of(session: SessionState) -> SessionFacts:
    """What system functions are told of a session."""
    return SessionFacts(
        names_of(session), session.user, f"PostgreSQL {SERVER_VERSION}", session.session_id, session.variable
    )
