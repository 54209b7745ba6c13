"""What a run will cost, known before it runs and without any earlier record.

A method is rehearsed: its class runs through the harness' own loop, on made-up images and towers of
the right depth that are tiny and count what passes through them (`stand_in`, `tally`, `rehearsal`).
Two rehearsals of different sizes give straight lines, which are read off at the sizes of the
scenario (`lines`). What a pass through the backbone itself costs is counted on torch's meta device
(`pass_cost`), and how fast it is follows from a table of graphics processors (`hardware`) or from a
short measurement here (`calibration`). `costs` puts all of it together.
"""
