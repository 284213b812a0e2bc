"""The ``tidemark`` command: one module per subcommand, and a thin table that finds them."""
