"""Messages of users' topics to rows: formats, what registries say, and which messages are rows at all."""
