"""AWS as the commands call it: the account of the shell, or the local cloud of `kb serve`."""

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from kb.commands.api_client import Api, CannotAsk, NoRoute
from kb.local import CLOUD_PATH

CONNECTIONS = 16
ATTEMPTS = 5


def local_cloud(api: Api) -> Mapping[str, str] | None:
    """The environment of the local cloud behind this address; None where it has none."""
    if not api.is_local:
        return None
    try:
        cloud = api.get(CLOUD_PATH)
    except NoRoute:
        return None
    return {name: str(value) for name, value in cloud.items()}


def client(service: str, cloud: Mapping[str, str] | None) -> Any:
    """A client of the local cloud, or (None) of what the shell is set up for.

    Raises CannotAsk where that is incomplete.
    """
    config = Config(
        connect_timeout=5,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=CONNECTIONS,
    )
    try:
        if cloud is None:
            return boto3.client(service, config=config)
        session = boto3.Session(
            cloud["AWS_ACCESS_KEY_ID"],
            cloud["AWS_SECRET_ACCESS_KEY"],
            region_name=cloud["AWS_REGION"],
        )
        return session.client(service, endpoint_url=cloud["AWS_ENDPOINT_URL"], config=config)
    except BotoCoreError as error:
        raise CannotAsk(
            f"AWS cannot be asked ({error}); set AWS_PROFILE and AWS_REGION, or run aws configure"
        ) from error
