"""One file for each thing outside the process; botocore's and OpenSearch's errors end here."""
