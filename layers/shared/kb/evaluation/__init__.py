"""How good the lookup is on labelled questions, and the profile that they support."""
