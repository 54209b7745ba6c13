"""How docs/results.md is made: what it reads, its sections, their wording and its pictures."""
