"""Sweeps: many runs from one table of methods, scenarios, shots and seeds, with nothing lost.

`sweep_file` reads what is asked for (`request`, `grid`), `plan` makes cells of it, `states` says
which are done, `scheduler` takes them through a launcher, which starts, watches and stops processes
and does nothing else. Every process runs `worker` on one request.
"""
