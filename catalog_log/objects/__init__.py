"""What has a name in a schema: one class for each kind of object, in a file of its own, with its own fields.

A class says what the catalog, statements and subscribers want to know of its kind: how it is called, its record, what
goes with what, which controllers are told of it.  What SHOW CREATE and the system relations say is beside those
(``adapter/system/kinds/``).
"""

from collections.abc import Mapping

from catalog_log.objects.asked import cluster_of, ever, numbered_columns, own_columns, places, view_inputs
from catalog_log.objects.check import CHECK, Check
from catalog_log.objects.connection import Connection, Secret
from catalog_log.objects.definition import Definition, Reference, SparkText
from catalog_log.objects.errors import ERRORS_COLUMNS, Errors
from catalog_log.objects.generator import Generator
from catalog_log.objects.index import PRIMARY, UNIQUE, Index, key_names
from catalog_log.objects.item import Audience, Column, Item, Maintained, Queried, Relation, numbered
from catalog_log.objects.materialized_view import MaterializedView
from catalog_log.objects.sequence import Sequence
from catalog_log.objects.sink import Sink
from catalog_log.objects.source import Source
from catalog_log.objects.table import ALWAYS, BY_DEFAULT, Table
from catalog_log.objects.view import View
from catalog_log.objects.webhook import PostCheck, Webhook, WebhookSource, is_source, is_table

TABLE, SOURCE, ERRORS = Table.kind, Source.kind, Errors.kind
VIEW, MATERIALIZED_VIEW, INDEX = View.kind, MaterializedView.kind, Index.kind
SEQUENCE, CONNECTION, SINK = Sequence.kind, Connection.kind, Sink.kind
WEBHOOK = WebhookSource.kind

KINDS: tuple[type[Item], ...] = (
    Table, Source, Errors, View, MaterializedView, Index, Sequence, Connection, Sink, WebhookSource,
)  # fmt: skip

BY_KIND: Mapping[str, type[Item]] = {each.kind: each for each in KINDS}

__all__ = [
    "ALWAYS", "BY_DEFAULT", "BY_KIND", "CHECK", "CONNECTION", "ERRORS", "ERRORS_COLUMNS", "INDEX", "KINDS",
    "MATERIALIZED_VIEW", "PRIMARY", "SEQUENCE", "SINK", "SOURCE", "TABLE", "UNIQUE", "VIEW", "WEBHOOK", "Audience",
    "Check", "Column", "Connection", "Definition", "Errors", "Generator", "Index", "Item", "Maintained",
    "MaterializedView", "PostCheck", "Queried", "Reference", "Relation", "Secret", "Sequence", "Sink", "Source",
    "SparkText", "Table", "View", "Webhook", "WebhookSource", "cluster_of", "ever", "is_source", "is_table",
    "key_names", "numbered", "numbered_columns", "own_columns", "places", "view_inputs",
]  # fmt: skip
