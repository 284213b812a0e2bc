"""Find a Java that can run the broker and Spark, or say in one line what to do.

Kafka 4 brokers and Spark 4 both need Java 17 or newer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache

from journal.errors import InvalidUsage

JAVA_MIN = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def major_version(version_output: str) -> int | None:
    """The major version from what ``java -version`` prints (``1.8`` is 8), or ``None`` where it says none."""
    match = _VERSION.search(version_output)
    if not match:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def find_java() -> str:
    """Path of a ``java`` >= 17: ``JAVA_HOME``'s, else the one on ``PATH``.  Raises ``InvalidUsage``."""
    return probe_java()[0]


@cache
def probe_java() -> tuple[str, str]:
    """That path, and what this Java says of itself: vendor, version and build."""
    hint = f"install Java {JAVA_MIN} or newer (for example openjdk-17-jre-headless) or point JAVA_HOME at it"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.access(java, os.X_OK):
        raise InvalidUsage(f"no java in JAVA_HOME={home}" if home else "no java on PATH", hint=hint)
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidUsage(f"{java} does not run: {error}", hint=hint) from error
    version = major_version(output)
    if version is None or version < JAVA_MIN:
        found = f"Java {version}" if version else "not a Java we know"
        raise InvalidUsage(f"{java} is {found}, Java {JAVA_MIN} or newer is needed", hint=hint)
    return java, output
