"""What COPY FROM reads: bytes to columns.  Pure."""
