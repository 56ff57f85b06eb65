"""The in-job runner of direct mode: standard library only, Python 3.8 and later, because it also runs inside images
this project does not build.

    python -m nemo_evaluator.direct plan.json
    python runner.pyz plan.json                  the zip application of the files that pack.json lists
"""
