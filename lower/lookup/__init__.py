"""Indexes: the lookups that answer a plan from an arrangement, without any engine."""
