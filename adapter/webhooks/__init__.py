"""Rows over HTTP: a request becomes a row of a source, once for each request's id.

What a request gives (:mod:`~adapter.webhooks.requests`) and what it is answered (:mod:`~adapter.webhooks.answers`) are
pure; :mod:`~adapter.webhooks.posting` writes rows by the executor, and :mod:`~adapter.webhooks.listener` alone knows
sockets.
"""
