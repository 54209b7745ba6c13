"""From a data set to a stream of domains: scenarios and their ids, the K-shot draw, the validation
split, image files and keys of their content, transforms, published data sets.

Folders from `models` to `cli` may import it. It imports `cache`, `plugins`, `system`, `progress`,
`seeds` and `errors`.
"""
