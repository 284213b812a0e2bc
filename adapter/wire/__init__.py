"""Postgres's wire protocol, version 3.0, without sockets: bytes to messages, messages to bytes, and the states between.

Source: the PostgreSQL manual, chapter "Frontend/Backend Protocol".
"""
