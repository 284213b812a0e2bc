"""Dates, times, moments, zones and intervals, as Postgres reads, shows and reckons with them."""
