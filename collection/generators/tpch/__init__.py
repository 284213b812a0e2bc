"""TPCH: the eight tables of TPC-H, equal to dbgen's row for row.  Pure.

What is promised and how events are numbered: :mod:`collection.generators.tpch.tables`.
"""
