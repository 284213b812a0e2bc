"""``tidemark retry OBJECT``: let a cluster work again on what it put into quarantine."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from catalog_log.image import Image
from catalog_log.model import NODES, SCHEMAS
from catalog_log.objects import Item, cluster_of
from cli.output import FAILED, OK, print_json
from cli.stack_options import add_find_options, find_kafka
from controllers.node_status import NodeStatus
from embedded.frontiers import FrontierReader
from journal.errors import InvalidUsage
from journal.names import TopicNames


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("object", metavar="OBJECT", help="its id, its name, or SCHEMA.NAME")
    add_find_options(parser)


def run(arguments: argparse.Namespace) -> int:
    kafka, env, _ = find_kafka(arguments)
    reader = FrontierReader(kafka, TopicNames(env), "retry")
    try:
        image = reader.after_barrier().image
    finally:
        reader.close()
    item = named(image, arguments.object)
    nodes = NodeStatus()
    try:
        answers = {key: nodes.retry(image, key, item.id) for key in asked(image, item)}
    finally:
        nodes.close()
    if arguments.json:
        print_json({"object": item.id, "controllers": answers})
    else:
        for key, answer in answers.items():
            says = {True: "tries again", False: "had not put it into quarantine"}.get(answer, answer)
            print(f"{key}: {says}")
    return OK if any(answer is True for answer in answers.values()) else FAILED


def named(image: Image, text: str) -> Item:
    """The object that ``text`` means.  Raises ``InvalidUsage`` 42P01 where none does, or several do."""

    def names(item: Item) -> Iterable[str]:
        schema = image.get(SCHEMAS, item.schema_id)
        return item.id, item.name, f"{schema.name if schema else item.schema_id}.{item.name}"

    found = [item for item in image.objects() if text in names(item)]
    if len(found) != 1:
        which = "no object is" if not found else f"{len(found)} objects are"
        raise InvalidUsage(f"{which} called {text}", sqlstate="42P01", hint="name it by its id, or as SCHEMA.NAME")
    return found[0]


def asked(image: Image, item: Item) -> list[str]:
    """The nodes that may have put ``item`` into quarantine: its cluster's, or any that may read it."""
    return [key for key, node in image.all(NODES) if cluster_of(item) in (None, "", node.cluster)]
