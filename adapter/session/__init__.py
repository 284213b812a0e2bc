"""One client's session over the protocol machine: blocks, prepared statements, portals, cancelling."""
