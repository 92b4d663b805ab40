"""The same system on one machine, without an account (extra `kb[local]`)."""

CLOUD_PATH = "/local/cloud"
"""Beside the API: where this machine's AWS is and what its tables are called, for the commands
that read them. Asking is better than a file: it is never stale, and ends with the server."""

DOCTOR_PATH = "/local/doctor"
"""Beside it: compares all stores and repairs, where the vectors are: in the server's memory."""
