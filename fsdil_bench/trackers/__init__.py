"""Programs that show runs while they are made: TensorBoard, MLflow, Weights & Biases.

Each is an extra, imported when a run asks for it (`--track NAME`). It imports `analysis` and what
that may import. `fsdil_bench.runs.tracking` calls the trackers and knows none of them.
"""
