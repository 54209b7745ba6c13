"""Published data sets: one file for the scenario and one for its source each."""
