"""How results are shown: tables in the terminal, leaderboards, plots.

It imports `analysis` and `runs`.
"""
