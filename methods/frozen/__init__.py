"""Methods on frozen features: nothing in the towers is trained."""
