"""What SHOW CREATE and the system relations say of each kind of object: a file a kind, called as the kind is."""

from collections.abc import Mapping
from importlib import import_module

from adapter.system.kinds.kind import KindRows
from catalog_log.objects import BY_KIND

KIND_ROWS: Mapping[str, KindRows] = {kind: import_module(f"{__name__}.{kind}").ROWS for kind in BY_KIND}
