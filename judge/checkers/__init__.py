"""One pure checker per promise: a history (and, for some, the log as witness) in, a verdict out."""
