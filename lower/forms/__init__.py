"""What is written out for an engine that lacks a function: templates, and forms that Spark and DuckDB share."""
