"""New York's flights of 2013 as a stream: the whole way from a Kafka producer to exact answers in SQL.

The demo uses what any user has: a plain Kafka producer for DDL and rows, psycopg for SQL, pandas to check the answers
independently.  It imports nothing of the parts it shows.
"""
