"""The executor: statements planned, put into effect and answered, without sockets of clients."""
