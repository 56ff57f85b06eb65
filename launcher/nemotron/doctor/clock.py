"""Clocks that differ confuse certificates, claims on folders, and whoever reads the times."""

from collections.abc import Iterator
from dataclasses import dataclass

from nemotron.doctor.finding import Finding, fail, ok, warn

NOTICEABLE_SECONDS, HARMFUL_SECONDS = 5.0, 300.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Another machine's clock, read between two looks at this one's."""

    place: str
    there: float
    before: float
    after: float

    @property
    def skew(self) -> float:
        """At least so many seconds ahead; negative: behind. What the question took is no skew."""
        if self.there < self.before:
            return self.there - self.before
        return max(0.0, self.there - self.after)


def clock_findings(readings: list[Reading]) -> Iterator[Finding]:
    for reading in readings:
        skew = abs(reading.skew)
        what = f"The clock of {reading.place} is {skew:,.0f} s {'ahead' if reading.skew > 0 else 'behind'}"
        if skew >= HARMFUL_SECONDS:
            yield fail(what, "have both set by NTP: certificates and claims on folders depend on it", "clock")
        elif skew >= NOTICEABLE_SECONDS:
            yield warn(what, "have both set by NTP; times in logs and records differ by that", "clock")
        else:
            yield ok(f"The clocks of {reading.place} and of this machine agree")
