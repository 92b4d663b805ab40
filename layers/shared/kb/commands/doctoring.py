"""kb doctor: bucket, catalog, content table and vectors compared, and repaired."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.options import AsJson, Stack
from kb.commands.screen import on_one_line, say, say_json, steps

if TYPE_CHECKING:
    from kb.doctor import Examined
    from kb.wiring import IngestParts

_Told = dict[str, Any]
"""A finding as JSON; `repaired` says what --fix came to."""


def doctor(
    stack: Stack = "",
    url: Annotated[
        str, typer.Option(envvar="KB_URL", show_default=False, help="Or address of a kb serve.")
    ] = "",
    fix: Annotated[bool, typer.Option("--fix", help="Repair what is found.")] = False,
    as_json: AsJson = False,
) -> int:
    """Compare bucket, catalog, content table and vectors.

    One line a finding. --fix looks at those documents again by ingest, writes once more what is
    not whole, and removes what is left over; started again, it goes on. Without --stack or --url,
    the ingest function's environment variables are taken from the shell. Needs the rights of the
    ingest function, s3:ListBucket, dynamodb:Scan and dynamodb:DeleteItem. Exit code 4 where
    findings are left; a document that only its writer can repair is one.

    \b
    Example: kb doctor --stack kb
    Example: kb doctor --stack kb --fix
    Example: kb doctor --url http://127.0.0.1:8000
    """
    total, keys = _examination(stack, url, fix)
    told: list[_Told] = []
    with steps("Comparing", total) as step:
        for one in keys:
            of_key = _told(one, fix)
            told += of_key
            for finding in () if as_json else of_key:
                _say(finding)
            step("")
    if as_json:
        say_json({"documents": total, "findings": told})
    else:
        _say_summary(total, told, fix)
    is_in_order = all(finding.get("repaired") for finding in told)
    return ExitCode.DONE if is_in_order else ExitCode.NOT_IN_ORDER


def parts_of(stack: str, url: str, changed: Mapping[str, str] | None = None) -> "IngestParts":
    """What the ingest function of a stack calls, made here. Raises WrongUsage where it cannot be.

    `url` is only told of; `changed` are variables that stand for the function's own.
    """
    import os

    from kb.wiring import ingest_parts_of

    if stack:
        from kb.commands.stack import ingest_environment

        environment = os.environ | dict(ingest_environment(stack))
    elif os.environ.get("CATALOG_TABLE"):
        environment = dict(os.environ)
    elif url:
        raise WrongUsage(f"{url} is no kb serve; name a deployed stack with --stack or KB_STACK")
    else:
        raise WrongUsage(
            "nothing is named to look at; name a stack with --stack or KB_STACK, or a kb serve"
            " with --url"
        )
    if environment.get("VECTOR_INDEX") == "embedded":
        raise WrongUsage(
            "with VECTOR_INDEX=embedded the vectors are in the memory of kb serve alone; name it"
            " with --url"
        )
    return ingest_parts_of(environment | dict(changed or {}))


def _examination(stack: str, url: str, fix: bool) -> tuple[int, Iterator["Examined"]]:
    from kb.commands.api_client import Api
    from kb.commands.aws import local_cloud

    api = Api(url, "") if url and not stack else None
    if api and local_cloud(api) is not None:
        return _of_serve(api, fix)
    from kb.wiring import make_doctor

    return make_doctor(parts_of(stack, url)).examine(fix)


def _of_serve(api: Any, fix: bool) -> tuple[int, Iterator["Examined"]]:
    from kb.commands.api_client import CannotAsk
    from kb.diagnosis import Finding, Kind
    from kb.doctor import Examined
    from kb.local import DOCTOR_PATH

    def findings(told: list[dict[str, str]]) -> list[Finding]:
        return [Finding(one["key"], Kind(one["kind"]), one["detail"]) for one in told]

    def answered() -> Iterator[Any]:
        for line in api.lines(DOCTOR_PATH, **({"fix": "1"} if fix else {})):
            if isinstance(line, dict) and "error" in line:
                raise CannotAsk(line["error"])
            yield line

    lines = answered()
    total = next(lines)
    return total, (
        Examined(line["key"], findings(line["found"]), findings(line["left"])) for line in lines
    )


def _told(one: "Examined", fix: bool) -> list[_Told]:
    """What was found, and what only the repair brought to light."""
    from dataclasses import asdict

    left = {finding.kind for finding in one.left}
    found = {finding.kind for finding in one.found}
    findings = [*one.found, *(finding for finding in one.left if finding.kind not in found)]
    return [
        asdict(finding) | ({"repaired": finding.kind not in left} if fix else {})
        for finding in findings
    ]


def _say(finding: _Told) -> None:
    state = {None: "", True: "repaired  ", False: "left      "}[finding.get("repaired")]
    key, detail = on_one_line(finding["key"]), on_one_line(finding["detail"])
    line = f"{state}{finding['kind']:<17}  {key}  {detail}"
    say(line.rstrip(), "green" if finding.get("repaired") else "yellow")


def _say_summary(total: int, told: list[_Told], fix: bool) -> None:
    counts = Counter(str(finding["kind"]) for finding in told)
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    left = sum(1 for finding in told if not finding.get("repaired"))
    repaired = f"; {len(told) - left} repaired, {left} left" if fix and told else ""
    documents = "1 document" if total == 1 else f"{total} documents"
    say(f"{documents}: {kinds or 'all in order'}{repaired}")
