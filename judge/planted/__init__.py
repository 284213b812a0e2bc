"""Bugs that only the judge can switch on, to prove that it would notice them."""
