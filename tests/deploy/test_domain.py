"""The domain's front refuses what Amazon's would, so that what passes it is signed and allowed."""

import pytest
from botocore.credentials import Credentials
from opensearchpy import AuthorizationException, OpenSearch, Urllib3AWSV4SignerAuth

from tests.deploy.conftest import OWNER
from tests.deploy.domain import HOST, Domain
from tests.deploy.ministack import REGION
from tests.deploy.stack import Stack

TOKEN = "The security token included in the request is invalid."
SIGNATURE = "The request signature we calculated does not match the signature you provided."


def client(domain: Domain, credentials: Credentials | None) -> OpenSearch:
    signer = Urllib3AWSV4SignerAuth(credentials, REGION, "es") if credentials else None
    port = int(domain.endpoint.partition(":")[2])
    return OpenSearch(
        hosts=[{"host": HOST, "port": port, "use_ssl": True}],
        http_auth=signer,
        ca_certs=str(domain.certificate),
        max_retries=0,
    )


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        (None, TOKEN),
        (Credentials("nobody", OWNER.secret), TOKEN),
        (Credentials(OWNER.access_key, "another secret"), SIGNATURE),
    ],
    ids=["not signed", "unknown key", "wrong secret"],
)
def test_who_is_not_known_is_refused(
    stack: Stack, domain: Domain, credentials: Credentials | None, reason: str
) -> None:
    with pytest.raises(AuthorizationException) as refusal:
        client(domain, credentials).indices.get_mapping(index="kb-chunks")
    assert refusal.value.info == {"Message": reason}


def test_who_signs_well_is_let_through(stack: Stack, domain: Domain) -> None:
    known = client(domain, Credentials(OWNER.access_key, OWNER.secret))
    assert known.cat.health(params={"format": "json", "h": "cluster"}) == [{"cluster": "test"}]
