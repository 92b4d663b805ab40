"""The functions are set up so that they start, and so that a change reaches who calls them."""

import pytest
from kb.grading import SPECIFIED
from kb.settings import IngestSettings, LookupSettings, read_settings

SETTINGS = {"IngestFunction": IngestSettings, "LookupFunction": LookupSettings}
BRING_YOUR_OWN = {
    "EmbeddingFunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:embedder",
    "OpenSearchEndpoint": "https://search.example",
}
OTHER_VALUES = {
    "Language": "en",
    "MaxL2Distance": "0.8",
    "HighlyRelevantThreshold": "0.9",
    "ReferenceThreshold": "1.0",
    "PreciseMinCoverage": "0",
}


def alias_version(stack, function: str) -> str:
    version: str = stack.properties(f"{function}Aliaslive")["FunctionVersion"]
    return version


@pytest.mark.parametrize("parameters", [{}, BRING_YOUR_OWN], ids=["made", "existing"])
def test_ingest_starts_with_its_environment(deploy, parameters):
    settings = read_settings(IngestSettings, deploy(**parameters).environment("IngestFunction"))
    existing = bool(parameters)
    assert settings.model_dump(exclude_unset=True) == {
        "catalog_table": "CatalogTable",
        "content_table": "ContentTable",
        "embedding_function": BRING_YOUR_OWN["EmbeddingFunctionArn"]
        if existing
        else "EmbeddingFunctionAliaslive",
        "opensearch_endpoint": "https://search.example"
        if existing
        else "https://OpenSearchDomain.DomainEndpoint",
        "opensearch_index": "kb-chunks",
        "knowledge_bucket": "KnowledgeBucket",
        "ingest_queue_url": "IngestQueue",
    }


def test_lookup_starts_with_its_environment_and_leaves_thresholds_to_the_profile(stack):
    settings = read_settings(LookupSettings, stack.environment("LookupFunction"))
    assert settings.profile == SPECIFIED
    thresholds = {"max_l2", "highly_relevant_threshold", "reference_threshold"}
    assert settings.model_dump(exclude_unset=True, exclude=thresholds) == {
        "catalog_table": "CatalogTable",
        "content_table": "ContentTable",
        "embedding_function": "EmbeddingFunctionAliaslive",
        "opensearch_endpoint": "https://OpenSearchDomain.DomainEndpoint",
        "opensearch_index": "kb-chunks",
        "session_table": "SessionTable",
        "invocation_table": "InvocationTable",
        "language": "zh",
        "session_ttl": 86400,
        "log_ttl": 90 * 86400,
    }


def test_a_parameter_reaches_the_setting_it_is_for(deploy):
    values = OTHER_VALUES | {"HighlyRelevantThreshold": "1.0", "ReferenceThreshold": "0.9"}
    settings = read_settings(LookupSettings, deploy(**values).environment("LookupFunction"))
    assert settings.language == "en"
    assert settings.max_l2 == 0.8
    assert settings.highly_relevant_threshold == 1
    assert settings.reference_threshold == 0.9
    assert settings.precise_min_coverage == 0


@pytest.mark.parametrize("function", SETTINGS)
def test_no_variable_is_set_that_no_one_reads(stack, function):
    read = {field.alias or name.upper() for name, field in SETTINGS[function].model_fields.items()}
    assert stack.environment(function).keys() - read == set()


def test_functions_end_before_who_waits_for_them(stack):
    functions = stack.of_type("AWS::Lambda::Function")
    assert {name: each["Timeout"] for name, each in functions.items()} == {
        "IngestFunction": 900,
        "LookupFunction": 28,  # API Gateway ends at 29
        "EmbeddingFunction": 120,
    }
    defaults = IngestSettings.model_fields["embedding_timeout"]
    assert functions["EmbeddingFunction"]["Timeout"] <= defaults.default
    assert defaults.default < functions["IngestFunction"]["Timeout"]


@pytest.mark.parametrize("architecture", ["arm64", "x86_64"])
def test_all_functions_run_on_the_chosen_processor(deploy, architecture):
    functions = deploy(Architecture=architecture).of_type("AWS::Lambda::Function")
    assert [each["Architectures"] for each in functions.values()] == 3 * [[architecture]]


def test_functions_from_source_share_runtime_and_layers_and_the_image_has_neither(stack):
    functions = stack.of_type("AWS::Lambda::Function")
    image = functions.pop("EmbeddingFunction")
    assert {each["Runtime"] for each in functions.values()} == {"python3.13"}
    assert {each["Handler"] for each in functions.values()} == {"app.handler"}
    layers = sorted(stack.of_type("AWS::Lambda::LayerVersion"))
    assert [sorted(each["Layers"]) for each in functions.values()] == 2 * [layers]
    assert image.keys() & {"Runtime", "Handler", "Layers", "Environment"} == set()


def test_layers_leave_with_the_stack(stack):
    layers = [each for each in stack.resources.values() if each["Type"].endswith("LayerVersion")]
    assert [each["DeletionPolicy"] for each in layers] == ["Delete", "Delete"]


def test_logs_are_json_kept_as_long_as_asked_and_written_where_the_role_may(deploy):
    stack = deploy(LogRetentionDays="7", LogLevel="DEBUG")
    for function in ("Ingest", "Lookup", "Embedding"):
        assert stack.properties(f"{function}Function")["LoggingConfig"] == {
            "LogFormat": "JSON",
            "ApplicationLogLevel": "DEBUG",
            "SystemLogLevel": "WARN",
            "LogGroup": f"{function}Logs",
        }
        assert stack.properties(f"{function}Logs")["RetentionInDays"] == "7"


def test_all_functions_are_traced(stack):
    functions = stack.of_type("AWS::Lambda::Function")
    assert [each["TracingConfig"] for each in functions.values()] == 3 * [{"Mode": "Active"}]


def test_lookup_starts_from_a_snapshot_unless_told_not_to(deploy):
    assert deploy().properties("LookupFunction")["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    without = deploy(LookupSnapStart="None")
    assert without.properties("LookupFunction")["SnapStart"] == {"ApplyOn": "None"}


@pytest.mark.parametrize("function", ["LookupFunction", "EmbeddingFunction"])
def test_a_new_fingerprint_moves_the_alias_and_an_old_one_does_not(deploy, function):
    first = deploy(CodeFingerprint="0123456789ab")
    assert alias_version(first, function) == f"{function}Version0123456789.Version"
    assert alias_version(deploy(CodeFingerprint="ba9876543210"), function) != alias_version(
        first, function
    )
    assert "0123456789ab" in first.properties(function)["Description"]  # else Lambda sees no change


def test_old_versions_and_their_snapshots_are_not_kept(stack):
    versions = [each for each in stack.resources.values() if each["Type"].endswith("::Version")]
    assert [each["DeletionPolicy"] for each in versions] == ["Delete", "Delete"]


def test_a_changed_layer_moves_the_alias_without_a_fingerprint(source):
    function = source["Resources"]["LookupFunction"]["Properties"]
    assert function["AutoPublishAliasAllProperties"] is True
    for layer in ("DependenciesLayer", "SharedLayer"):
        assert source["Resources"][layer]["Properties"]["PublishLambdaVersion"] is True


def test_the_functions_that_need_the_network_join_the_vpc_and_the_domain_does_too(deploy):
    stack = deploy(SubnetIds="subnet-1,subnet-2", SecurityGroupIds="sg-1,sg-2")
    inside = {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1,sg-2"}
    assert stack.properties("IngestFunction")["VpcConfig"] == inside
    assert stack.properties("LookupFunction")["VpcConfig"] == inside
    assert stack.properties("OpenSearchDomain")["VPCOptions"] == {
        "SubnetIds": ["subnet-1"],
        "SecurityGroupIds": "sg-1,sg-2",
    }


def test_without_subnets_there_is_no_vpc(stack):
    assert "VpcConfig" not in stack.properties("IngestFunction")
    assert "VpcConfig" not in stack.properties("LookupFunction")
    assert "VPCOptions" not in stack.properties("OpenSearchDomain")


def test_the_embedding_function_is_kept_warm_through_its_alias(deploy):
    rule = deploy().properties("EmbeddingFunctionKeepWarm")
    assert (rule["State"], rule["ScheduleExpression"]) == ("ENABLED", "rate(5 minutes)")
    (target,) = rule["Targets"]
    assert target["Arn"] == "EmbeddingFunctionAliaslive"
    assert target["Input"] == '{"texts": ["keep warm"]}'
    without = deploy(EmbeddingKeepWarm="false")
    assert without.properties("EmbeddingFunctionKeepWarm")["State"] == "DISABLED"


def test_provisioned_concurrency_is_bought_only_when_asked_for(deploy):
    assert "ProvisionedConcurrencyConfig" not in deploy().properties("EmbeddingFunctionAliaslive")
    bought = deploy(EmbeddingProvisionedConcurrency="2")
    config = bought.properties("EmbeddingFunctionAliaslive")["ProvisionedConcurrencyConfig"]
    assert config == {"ProvisionedConcurrentExecutions": "2"}


def test_building_needs_no_docker(source):
    metadata = {
        name: each["Metadata"]
        for name, each in source["Resources"].items()
        if each["Type"].startswith("AWS::Serverless::") and "Metadata" in each
    }
    assert metadata == {
        "DependenciesLayer": {"BuildMethod": "makefile"},
        "SharedLayer": {"BuildMethod": "makefile"},
        "IngestFunction": {"BuildMethod": "makefile"},
        "LookupFunction": {"BuildMethod": "makefile"},
        "EmbeddingFunction": {"SkipBuild": True},
    }
    image = source["Resources"]["EmbeddingFunction"]["Properties"]["ImageUri"]
    assert image == {"Ref": "EmbeddingImageUri"}  # a plain name would be pushed at every deploy
