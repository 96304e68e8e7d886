"""Acknowledgements of what was delivered on another connection, which is another task's."""

import random
from pathlib import Path

from amqpsniff.tables.schema import schema_of
from tests.session.script import Script, wired
from tests.thorough import rounds

from .splits import Packet, by_one_engine, by_tasks, deal

NAMES = schema_of("findings").names

LOST = """
    {name}.handshake
    {name}.C{channel}: channel.open
    {name}.S{channel}: channel.open-ok
    {name}.C{channel}: basic.consume queue=q consumer_tag=t
    {name}.S{channel}: basic.consume-ok consumer_tag=t
"""

ENDS = (
    "{name}.RST {side}",
    "{name}.FIN C\n{name}.FIN S",
    "{name}.FIN S",
    "{name}.C: connection.close reply_code=320",
    "{name}.S: connection.close reply_code=320\n{name}.C: connection.close-ok",
    "{name}.S{channel}: channel.close reply_code=406\n{name}.C{channel}: channel.close-ok",
)


def of_script(script: Script) -> list[Packet]:
    """The packets of a script, ready to be dealt to files."""
    return [
        Packet(one.ts_ns, one.octets, len(one.octets), one.link_type) for _, one in wired(script)
    ]


def clients_that_lose_channels(chance: random.Random) -> Script:
    """Connections of one host end with deliveries outstanding; others acknowledge those."""
    script = Script()
    open_ones: list[tuple[str, int]] = []
    for turn in range(30):
        if not open_ones or chance.random() < 0.4:
            open_ones.append((f"c{turn}", chance.choice([1, 1, 2])))
            name, channel = open_ones[-1]
            script.add(LOST.format(name=name, channel=channel))
            for tag in range(1, chance.randint(1, 4)):
                script.add(f"{name}.S{channel}: basic.deliver consumer_tag=t delivery_tag={tag}")
            continue
        name, channel = open_ones[chance.randrange(len(open_ones))]
        if chance.random() < 0.5:
            tag = chance.randint(1, 5)
            script.add(f"{name}.C{channel}: basic.ack delivery_tag={tag}")
            continue
        open_ones.remove((name, channel))
        end = chance.choice(ENDS)
        script.add(end.format(name=name, channel=channel, side=chance.choice("CS")))
    return script


def test_what_others_left_does_not_depend_on_the_cuts(tmp_path: Path) -> None:
    told = set()
    for turn in range(1, 1 + rounds(50)):
        chance = random.Random(f"left{turn}")
        packets = of_script(clients_that_lose_channels(chance))
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(2, 8))
        alone = by_one_engine(paths, ("findings",))["findings"]
        together = by_tasks(
            paths, ("findings",), task_bytes=chance.choice([500, 2_000]), max_reads=8
        )["findings"]
        assert together == alone, turn
        told |= {row[NAMES.index("code")] for row in alone}
    assert {"acknowledgement-stale", "acknowledgement-invalid"} <= told
