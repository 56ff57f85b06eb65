from nemotron.images.progress import Progress


def test_is_said_at_each_tenth_of_what_takes_a_while():
    said: list[str] = []
    progress = Progress("downloaded", 12_000_000_000, said.append)
    for _ in range(12_000):
        progress.add(1_000_000)
    assert (len(said), said[0], said[-1]) == (10, "downloaded 1.2 of 12.0 GB", "downloaded 12.0 of 12.0 GB")


def test_is_not_said_of_what_is_done_at_once():
    said: list[str] = []
    Progress("downloaded", 1000, said.append).add(1000)
    assert not said
