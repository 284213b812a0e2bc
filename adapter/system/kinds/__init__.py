"""What SHOW CREATE and the system relations say of each kind of object: a file a kind."""

from collections.abc import Mapping

from adapter.system.kinds import errors, index, materialized_view, sequence, source, table, view
from adapter.system.kinds.kind import KindRows
from catalog_log import objects

KIND_ROWS: Mapping[str, KindRows] = {
    objects.TABLE: table.ROWS,
    objects.SOURCE: source.ROWS,
    objects.ERRORS: errors.ROWS,
    objects.VIEW: view.ROWS,
    objects.MATERIALIZED_VIEW: materialized_view.ROWS,
    objects.INDEX: index.ROWS,
    objects.SEQUENCE: sequence.ROWS,
}
