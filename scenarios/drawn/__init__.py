"""The drawn world: its plugin is `scenario`, and the other embedded worlds use its objects."""
