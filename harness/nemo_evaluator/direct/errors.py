"""How a run ends that is neither right nor merely wrong.

DirectError
├── Refused        exit 2: nothing was created or deleted
└── StorageFailed  exit 1: the results folder takes no more
"""


class DirectError(Exception):
    """The message is one line that names the value, what is accepted and the next step."""


class Refused(DirectError):
    pass


class StorageFailed(DirectError):
    pass
