"""The process: the listening socket, who may come in, how many, and when garbage is collected."""
