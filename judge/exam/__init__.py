"""The internal-consistency exam: money that only moves, and views over it of which no version may be impossible.

After the public one (J. Brandon, "Internal consistency in streaming systems", 2021): transfers between ten accounts,
some of which come ten seconds late; credits, debits, balances, their total and two joins of the transfers with
themselves, each read through a sink as every version that it ever had.
"""
