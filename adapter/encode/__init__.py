"""Values in Postgres's text and binary formats, both ways: rows that are sent, parameters that came."""
