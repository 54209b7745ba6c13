"""Methods that train the image tower, whole or through adapters."""
