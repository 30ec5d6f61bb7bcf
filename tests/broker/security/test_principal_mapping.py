"""Rules that map certificates to principals; the cases are those of Kafka's documentation (KIP-371)."""

import pytest

from barnabas.broker.security.errors import SecuritySettingError
from barnabas.broker.security.principal import NotIdentified, Principal
from barnabas.broker.security.principal_mapping import PrincipalMapping

RULES = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=JohnDoe,OU=SME", "johndoe"),
        ("OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_counts(name: str, user: str) -> None:
    assert PrincipalMapping(RULES).principal(name) == Principal(user)


@pytest.mark.parametrize(
    ("rule", "name", "user"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("RULE:^CN=(.*)$/$1/U", "CN=a", "A"),
        (r"RULE:^CN=(.*)$/$1@$2/", "CN=a", "a@$2"),
        (r"RULE:^CN=(.*)$/$12/", "CN=a", "a2"),
        (r"RULE:^CN=(.*)$/x\/$1\$1/", "CN=a", "x/a$1"),
        (r"RULE:^CN=(.*)$/$0!/", "CN=a", "CN=a!"),
        (r"RULE:CN=(a)?(.*)/$1$2/", "CN=b", "b"),
        (r"RULE:(.*)/$1@x/", "CN=a", "CN=a@x@x"),
    ],
)
def test_replacements_are_javas(rule: str, name: str, user: str) -> None:
    assert PrincipalMapping(rule).principal(name) == Principal(user)


def test_a_name_without_a_rule_has_no_principal() -> None:
    with pytest.raises(NotIdentified, match=r"no rule of ssl\.principal\.mapping\.rules applies to CN=a"):
        PrincipalMapping("RULE:^CN=b$/b/").principal("CN=a")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no rule"),
        ("default", "'default' is neither DEFAULT nor"),
        ("RULE:^CN=(.*)$/$1", "is neither DEFAULT nor"),
        ("RULE:^CN=(.*$/$1/", "RE2 cannot use the pattern '.CN=(.*.'"),
        (r"RULE:^CN=(?=a).*$/$1/", "RE2 cannot use the pattern"),
    ],
)
def test_a_text_that_is_no_rule_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SecuritySettingError) as refused:
        PrincipalMapping(text)
    assert complaint.replace(".CN", "^CN").replace(".'", "$'") in str(refused.value)
