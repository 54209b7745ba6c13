"""Where the runs of a sweep are started: on this machine, by Ray, by Slurm.

It imports the rest of `sweeps`, `runs` and `system`.
"""
