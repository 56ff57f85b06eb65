# The offline Hugging Face hub of shared/, for tests that read real datasets.

hub_start() {
    [ -f "$shared/hub/serve.py" ] || fail "no $shared/hub/serve.py: name the folder that holds hub/ with NEL_SHARED"
    port=$(python -c "$free_port" 8900)
    start hub python "$shared/hub/serve.py" --port "$port"
    echo "http://127.0.0.1:$port" >"$state/hub/url"
}

hub_answers() {
    python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' \
        "$(cat "$state/hub/url")/api/datasets/openai/gsm8k"
}

hub_env() {
    variable NEL_TEST_HUB "$(cat "$state/hub/url")"
}

# The wanted port, or any when somebody has it.
free_port='
import socket, sys
for port in int(sys.argv[1]), 0:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(probe.getsockname()[1])
        break
'
