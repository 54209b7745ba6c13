"""The page of the leaderboards while runs are made: served to this machine alone, always current.

changes     which records and unfinished runs there are, and whether any of them changed
activity    what is running, what stopped, what failed
live_board  the page, made again in the background where something changed
server      the two paths that a browser may ask for
assets      the script that keeps the page current
"""
