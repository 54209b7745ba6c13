"""Published data sets: `X.py` makes the scenario, `X_source.py` downloads and checks the files.

They are separate because the code of a scenario is part of the ids of its runs: a new address or
checksum must not change them.
"""
