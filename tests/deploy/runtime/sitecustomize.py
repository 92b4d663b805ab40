"""What Lambda does before a Python function with JSON logs starts, and MiniStack does not.

Lambda's runtime writes each record as JSON with its extra fields; loaded by MiniStack itself, which
has the same path, this does nothing.
"""

import json
import logging
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _ordinary = logging.makeLogRecord({}).__dict__.keys()

    class _Json(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            extra = {k: v for k, v in record.__dict__.items() if k not in _ordinary}
            told = {"level": record.levelname, "message": record.getMessage(), **extra}
            if record.exc_info:
                told["stackTrace"] = self.formatException(record.exc_info)
            return json.dumps(told, default=str, ensure_ascii=False)

    _handler = logging.StreamHandler()
    _handler.setFormatter(_Json())
    logging.root.addHandler(_handler)
    logging.root.setLevel(logging.INFO)
    os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"] = "on-demand"
