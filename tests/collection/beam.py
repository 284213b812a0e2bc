"""Nexmark one event after the other, with one Java random number at a time: what batches are compared with.

The algorithm is that of Apache Beam's generator (see :mod:`collection.generators.nexmark`), told in the order in which
it draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from collection.generators.mixed import mix


class JavaRandom:
    def __init__(self, seed: int) -> None:
        self.state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def bits(self, count: int) -> int:
        self.state = (self.state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        found = self.state >> 48 - count
        return found - (1 << 32) if count == 32 and found >> 31 else found

    def below(self, bound: int) -> int:
        if bound & bound - 1 == 0:
            return bound * self.bits(31) >> 31
        while True:
            found = self.bits(31)
            if found - found % bound + bound - 1 < 1 << 31:
                return found % bound

    def long_below(self, bound: int) -> int:
        if bound < (1 << 31) - 1:
            return self.below(bound)
        found = (self.bits(32) << 32) + self.bits(32)
        found = (found + (1 << 63)) % (1 << 64) - (1 << 63)
        return abs(int(math.copysign(abs(found) % bound, found)))

    def price(self) -> int:
        fraction = ((self.bits(26) << 27) + self.bits(27)) * 2.0**-53
        return math.floor(math.pow(10.0, fraction * 6.0) * 100.0 + 0.5)

    def word(self, longest: int) -> str:
        length = 3 + self.below(longest - 3)
        return "".join(" " if self.below(13) == 0 else chr(97 + self.below(26)) for _ in range(length)).strip(" ")

    def extra(self, size: int, wanted: int) -> str:
        if size > wanted:
            return ""
        wanted -= size
        delta = math.floor(wanted * 0.2 + 0.5)
        length = wanted - delta + (self.below(2 * delta) if delta else 0)
        found: list[str] = []
        while len(found) < length:
            left = self.bits(32)
            for _ in range(6):
                rest = abs(left) % 26 * (1 if left >= 0 else -1)
                found.append(chr(97 + rest))
                left = abs(left) // 26 * (1 if left >= 0 else -1)
        return "".join(found[:length])


def event(said: Mapping[str, int], table: str, number: int) -> tuple | None:
    """The row of event ``number`` in ``table``, if it is of that; times in microseconds."""
    group = said["out of order group size"]
    number = number // group * group + number * 953 % group
    delay = (1_000_000 + said["event rate"] // 2) // said["event rate"]

    def ms(of: int) -> int:
        return said["base time"] // 1000 + of * delay // 1000

    seed = number ^ int(mix(np.array([said["seed"]], np.uint64))[0])
    random = JavaRandom(seed)
    epoch, place = divmod(number, 50)
    kind = "person" if place < 1 else "auction" if place < 4 else "bid"
    if kind != table:
        return None

    def someone() -> int:
        active = min(epoch + 1, said["active people"])
        return epoch + 1 - active + random.long_below(active + 10)

    if kind == "person":
        first = "Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter".split(",")[random.below(11)]
        name = f"{first} {'Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris'.split(',')[random.below(9)]}"
        mail = f"{random.word(7)}@{random.word(5)}.com"
        card = " ".join(f"{random.below(10000):04}" for _ in range(4))
        cities = "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne"
        city = cities.split(",")[random.below(10)]
        state = "AZ,CA,ID,OR,WA,WY".split(",")[random.below(6)]
        extra = random.extra(8 + sum(map(len, (name, mail, card, city, state))), said["person size"])
        return 1000 + epoch, name, mail, card, city, state, 1000 * ms(number), extra
    last = 3 * epoch + min(place - 1, 2)
    if kind == "auction":
        hot = random.below(said["hot sellers ratio"]) > 0
        seller = 1000 + (epoch // 100 * 100 if hot else someone())
        category, initial = 10 + random.below(5), random.price()
        ahead = ms(number + said["in flight auctions"] * 50 // 3) - ms(number)
        expires = ms(number) + 1 + random.long_below(max(2 * ahead, 1))
        name, description = random.word(20), random.word(100)
        reserve = initial + random.price()
        extra = random.extra(8 + len(name) + len(description) + 40, said["auction size"])
        return (1000 + last, name, description, initial, reserve, 1000 * ms(number), 1000 * expires, seller, category,
                extra)  # fmt: skip
    if random.below(said["hot auction ratio"]) > 0:
        auction = last // 100 * 100
    else:
        least = max(last - said["in flight auctions"], 0)
        auction = least + random.long_below(last - least + 11)
    bidder = epoch // 100 * 100 + 1 if random.below(said["hot bidders ratio"]) > 0 else someone()
    return 1000 + auction, 1000 + bidder, random.price(), 1000 * ms(number), random.extra(32, said["bid size"])
