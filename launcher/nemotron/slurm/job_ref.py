"""Which job is meant: a number alone does not say, as clusters use their numbers again."""

from collections.abc import Mapping
from dataclasses import dataclass

from nemotron.job import Submission


@dataclass(frozen=True, slots=True)
class JobRef:
    job_id: str
    user: str
    name: str
    """Unique: the job folder's name is its end."""
    submitted: float
    """Seconds since the epoch, by the cluster's clock."""
    folder: str
    """The job's own, on the cluster's shared storage."""
    cluster: str = ""

    @classmethod
    def of(cls, submission: Submission) -> "JobRef":
        known: Mapping[str, str] = submission.details
        return cls(
            submission.job_id,
            known["user"],
            known["name"],
            float(known["submitted"]),
            known["folder"],
            known.get("cluster", ""),
        )

    @property
    def details(self) -> dict[str, str]:
        return {
            "user": self.user,
            "name": self.name,
            "submitted": str(self.submitted),
            "folder": self.folder,
            "cluster": self.cluster,
        }
