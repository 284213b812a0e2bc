"""Who may come in: everybody (trust), or whoever knows the one password (SCRAM-SHA-256, by scramp).

With a password set, what is kept in memory is the salted SCRAM verifier, not the password.  The user's name is not
checked: there are no roles yet, and every session has all rights.
"""

from __future__ import annotations

from scramp import ScramMechanism

MECHANISM = "SCRAM-SHA-256"

ITERATIONS = 4096
"""Postgres's scram_iterations: the client pays them, at every connect."""


class WrongPassword(Exception):
    """The client's proof does not hold, or is not SCRAM at all."""


class Scram:
    """The server's side of SCRAM-SHA-256 for one password.  Many exchanges may use it at once."""

    def __init__(self, password: str) -> None:
        self._mechanism = ScramMechanism(MECHANISM)
        self._verifier = self._mechanism.make_auth_info(password, iteration_count=ITERATIONS)

    def exchange(self) -> Exchange:
        return Exchange(self._mechanism.make_server(lambda _user: self._verifier))


class Exchange:
    """One client's conversation: two messages in, two out.  Both raise :class:`WrongPassword`."""

    def __init__(self, server) -> None:
        self._server = server

    def first(self, data: bytes) -> bytes:
        """libpq leaves the user's name empty (the startup message had it), which scramp refuses to parse.  So scramp
        gets a stand-in for the name, and then the message as it was, since that is what both sides' proofs are over.
        """
        flag, authzid, bare = (data.split(b",", 2) + [b"", b""])[:3]
        if not bare.startswith(b"n=,"):
            return self._step(self._server.set_client_first, self._server.get_server_first, data)
        named = b",".join([flag, authzid, b"n=-" + bare[2:]])
        answer = self._step(self._server.set_client_first, self._server.get_server_first, named)
        self._server.client_first_bare = bare.decode()
        return answer

    def final(self, data: bytes) -> bytes:
        return self._step(self._server.set_client_final, self._server.get_server_final, data)

    def _step(self, put, get, data: bytes) -> bytes:
        try:
            put(data.decode())
            return get().encode()
        except Exception as e:  # a stranger wrote what is parsed here: whatever it breaks, it is not the password
            raise WrongPassword(str(e)) from e
