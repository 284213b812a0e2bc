"""What Java's own java.util.Random gives, by a program of one file that a JVM runs."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from embedded.java import find_java

PROGRAM = """
import java.util.Random;

public class Draws {
    public static void main(String[] args) {
        for (String arg : args) {
            String[] said = arg.split(":");
            Random random = new Random(Long.parseLong(said[0]));
            StringBuilder out = new StringBuilder();
            for (int i = 1; i < said.length; i++) {
                String what = said[i];
                out.append(i > 1 ? " " : "");
                switch (what) {
                    case "int": out.append(random.nextInt()); break;
                    case "long": out.append(random.nextLong()); break;
                    case "double": out.append(Double.doubleToLongBits(random.nextDouble())); break;
                    default: out.append(random.nextInt(Integer.parseInt(what)));
                }
            }
            System.out.println(out);
        }
    }
}
"""


@cache
def compiles() -> bool:
    """Whether the Java here can run a source file: one for running programs alone has no compiler."""
    command = [find_java(), "--list-modules"]
    return "jdk.compiler" in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def draws(directory: Path, asked: list[tuple[int, list[str]]]) -> list[list[int]]:
    """For each seed and what is drawn of it (``int``, ``long``, ``double`` or a bound), what Java draws; doubles by
    their bits."""
    path = directory / "Draws.java"
    path.write_text(PROGRAM)
    args = [":".join([str(seed), *what]) for seed, what in asked]
    command = [find_java(), "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(path), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [[int(each) for each in line.split()] for line in done.stdout.splitlines()]
