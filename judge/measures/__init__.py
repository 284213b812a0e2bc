"""How fast it answered, how long nobody could write, when unknown outcomes came to rest: see ``measured.py``."""
