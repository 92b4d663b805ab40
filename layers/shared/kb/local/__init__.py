"""The same system on one machine, without an account (extra `kb[local]`)."""
