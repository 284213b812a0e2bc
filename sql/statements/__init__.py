"""Statements to plans: what each kind of statement does to the catalog, to rows or to the session."""
