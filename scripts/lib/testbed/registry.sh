# Two real registries on loopback: one anonymous, one behind Bearer tokens of a service of our own.
. scripts/lib/testbed/packages.sh

registry_start() {
    mkdir -p "$state/registry" "$state/cache/registry"
    needs docker-registry
    python -c 'import cryptography' 2>/dev/null || fail "registry needs the dev extra: run scripts/test once"
    start registry python scripts/lib/testbed/registries.py "$state/registry" "$state/cache/registry"
}

registry_answers() {
    read -r anonymous protected <"$state/registry/addresses" &&
        python -c "$all_answer" "http://$anonymous/v2/" "http://$protected/v2/"
}

registry_env() {
    read -r anonymous protected <"$state/registry/addresses"
    variable NEL_TEST_REGISTRY "$anonymous"
    variable NEL_TEST_TOKEN_REGISTRY "$protected"
}

# 401 is an answer too.
all_answer='
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        urllib.request.urlopen(url, timeout=5)
    except urllib.error.HTTPError as error:
        assert error.code == 401
'
