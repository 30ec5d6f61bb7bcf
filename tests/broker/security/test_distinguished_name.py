"""Distinguished names as Java 17 writes them: the texts are the output of its `X500Principal.getName`."""

import pytest

from barnabas.broker.security.distinguished_name import distinguished_name

NAMES = {
    "CN=broker-1.example,O=Example\\, Inc.,ST=Berlin,C=DE": (
        "3051310b3009060355040613024445310f300d06035504080c064265726c696e3116301406035504"
        "0a0c0d4578616d706c652c20496e632e3119301706035504030c1062726f6b65722d312e6578616d"
        "706c65"
    ),
    'CN=\\ \\#lead\\=x\\+y\\<z\\>\\;\\"q\\\\\\ ,1.2.840.113549.1.9.1=#160b6140622e6578616d706c65': (
        "3039311a301806092a864886f70d010901160b6140622e6578616d706c65311b301906035504030c"
        "1220236c6561643d782b793c7a3e3b22715c20"
    ),
    "DC=example,CN=a+UID=u1": (
        "3037311c300806035504030c01613010060a0992268993f22c6401010c02753131173015060a0992"
        "268993f22c64011916076578616d706c65"
    ),
    "2.5.4.12=#0c024472,STREET=Way  2,2.5.4.5=#13023132,CN=Jürgen Δ": (
        "30403113301106035504030c0a4ac3bc7267656e20ce94310b3009060355040513023132310f300d"
        "06035504090c06576179202032310b3009060355040c0c024472"
    ),
    "CN=\\00a\\00b": "300f310d300b06035504031e0400610062",
    "": "3000",
}


@pytest.mark.parametrize(("text", "encoded"), NAMES.items())
def test_a_name_is_written_as_in_java(text: str, encoded: str) -> None:
    assert distinguished_name(bytes.fromhex(encoded)) == text


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_half_a_name_is_refused(size: int) -> None:
    encoded = bytes.fromhex(next(iter(NAMES.values())))
    with pytest.raises(ValueError):
        distinguished_name(encoded[:size])
