"""One run from request to record: the job, the loop over domains, what a method may see, what it
costs.

It imports every folder above it in the order of a run: `records`, `models`, `data`, `cache`,
`plugins`, `system`.
"""
