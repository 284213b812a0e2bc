"""DDL from any Kafka client: the `<env>.ddl` topic and what travels on it."""
