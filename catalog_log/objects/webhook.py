"""A source whose rows are posted over HTTP: a table that statements do not write.

Its rows are written, kept and bound as a table's, so whoever reads, stores or counts tables has nothing to learn; what
is its own is what a request must look like, and which of its parts are columns.  Columns are, in this order: the body,
the id of the request, which of its rows it is where a body may be many, the headers that are columns, and all headers
where they are one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeGuard

from catalog_log.objects.connection import Secret
from catalog_log.objects.item import Column, Item, Record
from catalog_log.objects.table import Table

JSON_ARRAY, NDJSON = "json array", "ndjson"
"""What bodies of many rows are: a list in JSON, or a value of JSON in each line."""


@dataclass(frozen=True)
class PostCheck:
    """What a request has to prove: that its sender knows ``secret``."""

    header: str
    """In lower case, as all names of headers here."""
    secret: Secret
    digest: str = ""
    """Of an HMAC of the body, as ``hashlib`` calls it; empty: the header is the secret itself."""
    encoding: str = ""
    """``hex`` or ``base64``, of an HMAC."""
    prefix: str = ""
    """What stands in the header before it."""


@dataclass(frozen=True)
class Webhook:
    format: str
    """``json``, ``text`` or ``bytes``, or one of those of many rows."""
    id_header: str
    """The header that has the request's id."""
    included: tuple[str, ...] = ()
    """Headers that are columns."""
    all_headers: bool = False
    left_out: tuple[str, ...] = ()
    """Headers that are not among all of them."""
    check: PostCheck | None = None

    @property
    def many(self) -> bool:
        """Whether a body may be many rows, or none."""
        return self.format in (JSON_ARRAY, NDJSON)

    def text(self) -> str:
        """As a record has it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Webhook:
        """Raises ``LookupError`` for what is none."""
        try:
            found: dict[str, Any] = json.loads(text)
            said = found.pop("check")
            check = None if said is None else PostCheck(**said | {"secret": Secret(**said["secret"])})
            lists = {name: tuple(found[name]) for name in ("included", "left_out")}
            return cls(**found | lists, check=check)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LookupError(f"webhook of a source: {error}") from None


_OPTION = "webhook"


@dataclass(frozen=True)
class WebhookSource(Table):
    kind = "webhook"
    word = "source"
    named = False
    """Not by a word of its own: statements call it a source."""
    plural = ""

    webhook: Webhook = Webhook("json", "")

    @property
    def format(self) -> str:
        return self.webhook.format

    def fields(self) -> dict[str, Any]:
        found = super().fields()
        return found | {"options": found["options"] | {_OPTION: self.webhook.text()}}

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> WebhookSource:
        found = super().with_ids(now, spark)
        assert isinstance(found, WebhookSource)
        return found

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> WebhookSource:
        found = super().of_record(head, columns, record)
        assert isinstance(found, WebhookSource)
        return replace(found, webhook=Webhook.of_text(record["options"][_OPTION]))


def is_table(item: object) -> TypeGuard[Table]:
    """Whether statements may write its rows and change its columns."""
    return isinstance(item, Table) and not isinstance(item, WebhookSource)


def is_source(item: Item) -> bool:
    """Whether statements call it a source."""
    return item.word == WebhookSource.word
