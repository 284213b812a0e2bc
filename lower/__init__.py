"""From a bound query to what an engine runs: one package an engine.  (Spark's is still :mod:`sql.forms.transpile`.)"""
