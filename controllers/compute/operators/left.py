"""What is left to Spark: why, and for how long it is not tried again in process."""

from __future__ import annotations

REST_MAX = 1024
"""Changes of one view that are left to Spark without another try, after ones that took too long."""


class Left(Exception):
    """Left to Spark; the message is the reason."""

    def __init__(self, reason: str, lasting: bool = False, large: bool = False) -> None:
        super().__init__(reason)
        self.lasting = lasting
        """Whether it will be so every time."""
        self.large = large
        """Whether it was tried and took too much."""


class Rest:
    """Of one query: what took too much in process is left to Spark for a while, each time for longer."""

    def __init__(self) -> None:
        self._left = 0
        self._length = 1

    def check(self) -> None:
        """Raises :class:`Left` while it lasts."""
        if self._left:
            self._left -= 1
            raise Left("it took too much in process lately")

    def after(self, left: Left) -> None:
        if left.large:
            self._left, self._length = self._length, min(2 * self._length, REST_MAX)

    def over(self) -> None:
        """It did not take too much."""
        self._length = 1
