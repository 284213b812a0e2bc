"""Of sources whose rows are posted: sources to who made them, tables to clients that only read."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, with_options
from catalog_log import model
from catalog_log.objects import Index, PostCheck, WebhookSource
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.syntax.webhooks import ID_HEADER


def _created(item: WebhookSource, name: str, image: ImageLike) -> str:
    webhook = item.webhook
    kept = next((each for each in image.dependents(item.id) if isinstance(each, Index) and each.constraint), None)
    cluster = None if kept is None else image.get(model.CLUSTERS, kept.cluster_id)
    where = "" if cluster is None else f" IN CLUSTER {quoted(cluster.name)}"
    lines = [f"CREATE SOURCE {name}{where}", f"FROM WEBHOOK BODY FORMAT {webhook.format.upper()}"]
    columns = item.columns[3 if webhook.many else 2 :]
    for header, column in zip(webhook.included, columns, strict=False):
        lines.append(f"INCLUDE HEADER {_text(header)} AS {quoted(column.name)}")
    if webhook.all_headers:
        left_out = ", ".join(f"NOT {_text(each)}" for each in webhook.left_out)
        lines.append("INCLUDE HEADERS" + (f" ({left_out})" if left_out else ""))
    if webhook.check is not None:
        lines.append(_check(webhook.check))
    if webhook.id_header != ID_HEADER:
        lines.append(f"WITH (REQUEST ID HEADER = {_text(webhook.id_header)})")
    return "\n".join(lines) + with_options(item, image)


def _check(check: PostCheck) -> str:
    secret = f"SECRET {check.secret.way.upper()} {_text(check.secret.name)} AS secret"
    proof = "secret"
    if check.digest:
        proof = f"encode(hmac(body, secret, '{check.digest}'), '{check.encoding}')"
        if check.prefix:
            proof = f"{_text(check.prefix)} || {proof}"
    given = f"HEADERS, BODY, {secret}" if check.digest else f"HEADERS, {secret}"
    return f"CHECK (WITH ({given}) constant_time_eq(headers->{_text(check.header)}, {proof}))"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


ROWS = KindRows("r", _created, listed=lambda item, image: (None, f"webhook {item.format}"))
