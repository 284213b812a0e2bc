"""SQL types and their values: what each type is in every engine, its text forms, and what is reckoned with its values.

Pure, but for the Arrow and Avro types that it names.  Nothing here knows of collections, catalogs or statements.
"""
