"""The blanks that Postgres lets stand around a value: those of C, not all that Unicode has."""

BLANKS = " \t\n\v\f\r"
