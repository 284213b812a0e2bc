"""The types of queries over system relations, as Postgres has them."""
