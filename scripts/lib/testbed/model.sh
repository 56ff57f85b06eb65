# The small real model behind llama.cpp's OpenAI-compatible server.

model_start() {
    start model python -m nemo_evaluator.demo
}

model_answers() {
    grep '^model: ' "$state/model/log"
}

model_env() {
    variable NEL_TEST_MODEL "$(sed -n 's/^url: //p' "$state/model/log")"
}
