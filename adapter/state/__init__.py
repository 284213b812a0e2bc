"""What one session is, and what the side that speaks the protocol and the side that knows SQL say to each other."""
