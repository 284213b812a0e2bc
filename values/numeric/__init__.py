"""Numbers, ``numeric`` above all: to the digit, as Postgres reckons."""
