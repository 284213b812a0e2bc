"""Queries over system relations: what their names mean, and the types that Postgres gives them."""
