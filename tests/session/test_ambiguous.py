"""Which publish a delivery is of, where several were alike."""

from __future__ import annotations

from tests.session.test_link_recorder import CONSUME, lines, linked, opened


def test_what_comes_after_an_ambiguous_choice_is_sure_again() -> None:
    """When all of it was handed on; one of it that comes again may be another as before."""
    publish = "[{}] p.C1: basic.publish exchange=x routing_key=k | body=5\n"
    deliver = "[{}] a.S1: basic.deliver consumer_tag=t exchange=x routing_key=k{} | body=5\n"
    text = opened("p", "a") + CONSUME.format("a", "q", "t")
    text += publish.format("p1") + publish.format("p2") + deliver.format("d1", "")
    text += deliver.format("r1", " redelivered=1") + deliver.format("d2", "")
    text += publish.format("p3") + deliver.format("d3", "")
    assert linked(text) == lines(
        """
        d1 p1 ambiguous 2ms 1
        r1 p1 ambiguous 3ms again
        d2 p2 ambiguous 3ms 1
        d3 p3 likely 1ms 1
        """
    )
