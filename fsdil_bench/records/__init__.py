"""What a finished run leaves behind: its identity and id, its scores, the record and its form,
checks that need nothing but the record, and archives for others.

It imports `data` (for scenario ids), `plugins` and `system`.
"""
