"""The API as the commands call it: a deployed one, or that of `kb serve`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests

from kb.commands.exits import WrongUsage
from kb.errors import InvalidInput, KbError, NotFound

CONNECT_SECONDS = 5
READ_SECONDS = 60
"""API Gateway ends a call after 29; the first question of a local server takes longer."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CannotAsk(KbError):
    """The API did not answer, or not as this API does; the message says the way out."""


class NoRoute(CannotAsk):
    """This is an API of ours, or another version of it, without what was asked for."""


class Api:
    """One address of the API. Each call returns the answer's JSON object.

    Raises InvalidInput or WrongUsage where the call must change, NotFound where what it names does
    not exist, else CannotAsk.
    """

    def __init__(self, url: str, key: str) -> None:
        host = _host_of(url)
        self.url = url.rstrip("/")
        self.is_local = host in LOOPBACK
        self._session = requests.Session()
        # A proxy for the outer world does not reach this machine.
        self._session.trust_env = not self.is_local
        if not (key.isascii() and key.isprintable()):
            raise WrongUsage("--api-key holds characters that no key has")
        if key.strip():
            self._session.headers["x-api-key"] = key.strip()

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        return self._call("GET", path, parameters)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, {}, body)

    def delete(self, path: str, **parameters: str) -> dict[str, Any]:
        return self._call("DELETE", path, parameters)

    def lines(self, path: str, **parameters: str) -> Iterator[Any]:
        """POST; the answer's lines, each a JSON value, as they come, however long it takes."""
        with self._asking():
            response = self._session.post(
                self.url + path, params=parameters, timeout=(CONNECT_SECONDS, None), stream=True
            )
            if not response.ok:
                self._answer_of(response, path)
            for line in response.iter_lines():
                yield json.loads(line)

    def documents(self, **filters: str) -> Iterator[dict[str, Any]]:
        """GET /documents, page by page."""
        page = {"next": ""}
        while True:
            answer = self.get("/documents", **{k: v for k, v in (filters | page).items() if v})
            yield from answer["documents"]
            if not answer["next"]:
                return
            page = {"next": answer["next"]}

    def _call(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        with self._asking():
            response = self._session.request(
                method,
                self.url + path,
                params=parameters,
                json=body,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                # The key is for this address alone.
                allow_redirects=False,
            )
        return self._answer_of(response, path)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except requests.ConnectionError as error:
            way_out = "start one with kb serve, or name another with --url or KB_URL"
            raise CannotAsk(f"nothing answers at {self.url}; {way_out}") from error
        except requests.Timeout as error:
            raise CannotAsk(
                f"{self.url} did not answer within {READ_SECONDS} s; try again"
            ) from error
        except (requests.RequestException, UnicodeError) as error:
            # UnicodeError: a host name that cannot be one.
            raise CannotAsk(f"{self.url} cannot be asked ({type(error).__name__})") from error

    def _answer_of(self, response: requests.Response, path: str) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise CannotAsk(
                f"{self.url}{path} answers with status {response.status_code} and no JSON object;"
                " is --url the address of this API?"
            )
        if response.ok and not response.is_redirect:
            return answer
        error = answer.get("error")
        code, message = (
            (str(error.get("code")), str(error.get("message")))
            if isinstance(error, dict)
            else ("", str(answer.get("message", "")))
        )
        match response.status_code:
            case 400 | 413:
                field, _, problem = message.partition(": ")
                raise InvalidInput(field, problem) if problem else WrongUsage(message)
            case 401 | 403:
                raise WrongUsage(
                    f"{self.url} wants another key ({message}); name it with --api-key"
                    " or KB_API_KEY"
                )
            case 404 if code == "not_found":
                if path == "/document":
                    raise NotFound(message)
                raise NoRoute(f"{self.url} has no {path}; is --url the address of this API?")
            case 429:
                raise CannotAsk("the key's calls are used up for now; try again later")
            case status:
                raise CannotAsk(f"{self.url}{path} answers with status {status}: {message}")


def _host_of(url: str) -> str:
    """Raises WrongUsage where the address has none, or is none."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts.hostname
    except ValueError:
        pass
    raise WrongUsage(f"--url {url} is no address; one looks like http://127.0.0.1:8000")
