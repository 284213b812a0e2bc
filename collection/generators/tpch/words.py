"""The words of TPC-H, in the order and with the weights that dbgen draws them by.

They are in the specification (clause 4.2.2.13 and the tables of 4.2.3); how likely a word is dbgen's alone
(``dists.dss``).  A misspelt one is misspelt there.
"""

from __future__ import annotations

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")

NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
"""Each with the region that it is in."""

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "TAKE BACK RETURN", "NONE")
MODES = ("REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP")
RETURNED = ("R", "A")

TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)

CONTAINERS = tuple(
    f"{size} {shape}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for shape in ("CASE", "BOX", "BAG", "JAR", "PACK", "PKG", "CAN", "DRUM")
)

COLORS = tuple(
    """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse
    chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted
    gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen
    magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru
    pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring
    steel tan thistle tomato turquoise violet wheat white yellow""".split()
)

# -- the sentences of comments


def _weighed(text: str) -> tuple[tuple[str, int], ...]:
    """Of ``word*weight`` or ``word``, which weighs 1, by commas."""
    found = []
    for each in text.replace("\n", " ").split(","):
        word, _, weight = " ".join(each.split()).partition("*")
        found.append((word, int(weight or 1)))
    return tuple(found)


NOUNS = _weighed(
    """packages*40, requests*40, accounts*40, deposits*40, foxes*20, ideas*20, theodolites*20, pinto beans*20,
    instructions*20, dependencies*10, excuses*10, platelets*10, asymptotes*10, courts*5, dolphins*5, multipliers,
    sauternes, warthogs, frets, dinos, attainments, somas, Tiresias, patterns, forges, braids, frays, warhorses,
    dugouts, notornis, epitaphs, pearls, tithes, waters, orbits, gifts, sheaves, depths, sentiments, decoys, realms,
    pains, grouches, escapades, hockey players"""
)
VERBS = _weighed(
    """sleep*20, wake*20, are*20, cajole*20, haggle*20, nag*10, use*10, boost*10, affix*5, detect*5, integrate*5,
    maintain, nod, was, lose, sublate, solve, thrash, promise, engage, hinder, print, x-ray, breach, eat, grow,
    impress, mold, poach, serve, run, dazzle, snooze, doze, unwind, kindle, play, hang, believe, doubt"""
)
ADVERBS = _weighed(
    """sometimes, always, never, furiously*50, slyly*50, carefully*50, blithely*40, quickly*30, fluffily*20, slowly,
    quietly, ruthlessly, thinly, closely, doggedly, daringly, bravely, stealthily, permanently, enticingly, idly,
    busily, regularly, finally, ironically, evenly, boldly, silently"""
)
ADJECTIVES = _weighed(
    """special*20, pending*20, unusual*20, express*20, furious, sly, careful, blithe, quick, fluffy, slow, quiet,
    ruthless, thin, close, dogged, daring, brave, stealthy, permanent, enticing, idle, busy, regular*50, final*40,
    ironic*40, even*30, bold*20, silent*10"""
)
PREPOSITIONS = _weighed(
    """about*50, above*50, according to*50, across*50, after*50, against*40, along*40, alongside of*30, among*30,
    around*20, at*10, atop, before, behind, beneath, beside, besides, between, beyond, by, despite, during, except,
    for, from, in place of, inside, instead of, into, near, of, on, outside, over, past, since, through, throughout,
    to, toward, under, until, up, upon, whithout, with, within"""
)
AUXILIARIES = _weighed(
    """do, may, might, shall, will, would, can, could, should, ought to, must, will have to, shall have to,
    could have to, should have to, must have to, need to, try to"""
)
TERMINATORS = ((".", 50), (";", 1), (":", 1), ("?", 1), ("!", 1), ("--", 1))

SENTENCES = (("NVT", 3), ("NVPT", 3), ("NVNT", 3), ("NPVNT", 1), ("NPVPT", 1))
"""Of noun phrases, verb phrases, noun phrases behind a preposition, and what ends them."""
NOUN_PHRASES = (("N", 10), ("JN", 20), ("J,JN", 10), ("DJN", 50))
VERB_PHRASES = (("V", 30), ("XV", 1), ("VD", 40), ("XVD", 1))
