"""The built-in scenarios, and the embedded world they come with."""
