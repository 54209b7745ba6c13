"""Speed of the harness and of the methods, as ratios measured in one run on one machine."""
