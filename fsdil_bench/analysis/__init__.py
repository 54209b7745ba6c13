"""What follows from records: rows and boards, statistics, comparisons, the paper's tables.

It imports `runs` and what that may import. It prints nothing.
"""
