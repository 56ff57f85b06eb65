"""The in-job runner of direct mode: standard library only, Python 3.8 and later, because it also runs inside images
this project does not build.

    python -m nemo_evaluator.direct plan.json
    python runner.pyz plan.json                  the zip application

To build the application without importing anything: pack.json lists its files, name in the archive -> path in the
folder of the package nemo_evaluator. `zipapp.create_archive` of a folder with those files needs no further argument.
"""
