# Our harness image in the testbed's registry, on a Debian base made here: nothing can be pulled.
. scripts/lib/testbed/packages.sh
. scripts/lib/testbed/engine.sh

# There while the registry has the image of these very sources.
image_is_up() {
    is_up registry && [ "$(cat "$state/cache/image" 2>/dev/null)" = "$(image_sources)" ] &&
        python -c "$has_tag" "$(registry_host)" "$image_repository" 2>/dev/null
}

image_start() {
    is_up registry || fail "image needs the registry: scripts/testbed up registry image"
    needs buildah podman runc debootstrap
    [ -n "${PYTHON:-}" ] || PYTHON=$(python -c 'import sys; print(sys.executable)')
    export PYTHON
    engine_settings
    mkdir -p "$state/image"
    base=$(registry_host)/base:bookworm
    python -c "$has_tag" "$(registry_host)" base 2>/dev/null || push_base "$base"
    build_image "$base" "$(registry_host)/$image_repository:testbed"
    image_sources >"$state/cache/image"
}

image_answers() {
    image_is_up
}

image_env() {
    variable NEL_TEST_IMAGE "$(registry_host)/$image_repository:testbed"
}

push_base() {
    echo "Making a Debian base image (once) ..." >&2
    rm -rf "$state/cache/base"
    PATH=$PATH:/usr/sbin:/sbin debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        bookworm "$state/cache/base" >"$state/image/log" 2>&1 || fail "debootstrap failed: see $state/image/log"
    {
        tar -C "$state/cache/base" -c . | podman import - "$1" && podman push -q "$1"
    } >>"$state/image/log" 2>&1 || fail "the base image cannot be pushed: see $state/image/log"
    rm -rf "$state/cache/base"
}

build_image() {
    echo "Building the harness image (once) ..." >&2
    {
        # In a chroot, because a build needs no more isolation than this machine gives.
        BUILDAH_ISOLATION=chroot containers/build lm-evaluation-harness "$1" "$2" && podman push -q "$2"
    } >>"$state/image/log" 2>&1 || fail "the harness image cannot be built: see $state/image/log"
}

# What the image is made of.
image_sources() {
    { git ls-files -z harness containers pyproject.toml | xargs -0 cat; } | cksum
}

registry_host() {
    cut -d' ' -f1 "$state/registry/addresses"
}

image_repository=public/lm-evaluation-harness
has_tag='
import sys, urllib.request
urllib.request.urlopen(f"http://{sys.argv[1]}/v2/{sys.argv[2]}/tags/list", timeout=5)
'
