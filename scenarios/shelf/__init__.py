"""The `shelf` scenario: fifty things filmed in eight sessions, drawn by code, nothing downloaded.

It stands in for CORe50 where there is no data set: numbers on it say nothing about CORe50. A class
is an individual, such as one of five cups; a domain is a session, and its pictures are frames of
short videos. As in the paper's CORe50, a random fifth of the frames of every video is the test set,
so near copies of test frames are learned. The variants:

- `@blocks`: the fifth is one stretch of video, and the frames beside it are not used at all.
- `@sessions`: as `@blocks`, and two sessions that no domain shows are tested on after every domain.
- `@validation`: other videos of the base session and two sessions that occur nowhere else, to
  choose options on: unlike in a split of the base, the domain changes there too.
"""

from __future__ import annotations

from fsdil_bench import ScenarioInfo, hookimpl


@hookimpl
def fsdil_scenarios() -> list[ScenarioInfo]:
    """Offer `shelf`."""
    return [
        ScenarioInfo(
            "shelf",
            "50 things in eight recording sessions, drawn by code like CORe50; needs no download",
            "fsdil_scenarios.shelf.build:build",
            domains=("shelf", "desk", "grass", "night", "hand", "window", "kitchen", "street"),
            classes=50,
            variants={
                "blocks": "test on one stretch of each video, away from the training frames",
                "sessions": "as blocks, and test on two sessions that no domain shows",
                "validation": "videos and sessions of their own, to choose options on",
            },
        )
    ]
