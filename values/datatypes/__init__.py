"""A type is one row: its names, what carries it, its texts and its bytes (:mod:`values.datatypes.row`)."""
