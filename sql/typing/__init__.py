"""Types of expressions: every node gets one, and what an engine means otherwise than Postgres is rewritten."""
