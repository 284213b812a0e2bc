"""Functions of Postgres's, one row each: what it takes and gives, and what each engine runs.

To add one, write its row into the module of its area; dispatch, the forms that Spark and the in-process engine print,
the functions that both run in Python and the page of functions (``docs/sql.md``) come of the row.  What no row can say
(an argument that must be a constant, any number of arguments of any types) is in ``sql/typing/check_*.py``.
"""
