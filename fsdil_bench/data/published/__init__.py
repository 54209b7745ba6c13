"""Published data sets: where they come from, how they are downloaded, checked and unpacked, and
where they are on this machine.

It imports the rest of `data` and what that may import. Of the rest of `data`, only `streams`
imports it.
"""
