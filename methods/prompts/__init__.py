"""Methods that learn prompts, in the text or in the image tower."""
