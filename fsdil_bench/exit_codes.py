"""The exit codes of all commands, and of the processes of a sweep: here and nowhere else.

`docs/commands.md` shows `MEANINGS` as a table. Errors name their code as `exit_code`.
"""

from __future__ import annotations

DONE = 0
FAILED = 1
BAD_INPUT = 2
BUSY = 75
INTERRUPTED = 130
PIPE_CLOSED = 141

MEANINGS = {
    DONE: "done; for a command that asks something, the answer is yes",
    FAILED: "the answer is no, or something failed or is incomplete",
    BAD_INPUT: "bad input: a wrong option or name, or a file, folder or record that is missing or "
    "cannot be read",
    BUSY: "another process is at work on this very run: wait for it",
    INTERRUPTED: "interrupted with Ctrl-C; what is finished is kept",
    PIPE_CLOSED: "the program that reads the output has ended",
}
