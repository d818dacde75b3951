"""Two cards under foreign bus models, driven by the driver that was written from the book.

    driver ─ AXI4-Lite ─► card a ─ AXI4-Stream ─► switch ─► card b ◄─ AXI4-Lite ─ driver
    memory ◄─── AXI4 ───┘                                       └─── AXI4 ───► memory

`POSTHORN_BOOK` names the folder of the book's pages, `POSTHORN_FIRMWARE` the firmware's file.
"""

import logging
import os
import pathlib
import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import (
    AddressSpace,
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiSlave,
    AxiStreamBus,
    AxiStreamSink,
    AxiStreamSource,
    MemoryRegion,
)

from book import Book
from posthorn import Card, Endpoint, Pair, Refused, connect

BOOK = Book(os.environ["POSTHORN_BOOK"])
FIRMWARE = pathlib.Path(os.environ["POSTHORN_FIRMWARE"]).read_bytes()
for name in ("cocotb.a", "cocotb.b"):
    logging.getLogger(name).setLevel(logging.WARNING)
MEMORY_BASE = 0x12_3456_7000_0000
MEMORY_BYTES = 1 << 20
NOWHERE = MEMORY_BASE - 0x10000
"""No memory is there: the bus answers with an error."""


class Platform:
    """A card's surroundings, as the driver wants them."""

    def __init__(self, dut, pins):
        self.clock, self.interrupts = dut.clock, pins.interrupts
        self.window = AxiLiteMaster(AxiLiteBus.from_prefix(pins, "s_axil"), dut.clock)
        self.memory = MemoryRegion(MEMORY_BYTES)
        space = AddressSpace()
        space.register_region(self.memory, MEMORY_BASE)
        self.slave = AxiSlave(AxiBus.from_prefix(pins, "m_axi"), dut.clock, target=space)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(pins, "m_axis"), dut.clock)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(pins, "s_axis"), dut.clock)
        # An access of what isn't there is an error on the bus, and no surprise.
        for half in (self.slave.write_if, self.slave.read_if):
            half.log.setLevel(logging.CRITICAL)
        self.free = 0

    async def read(self, offset):
        return await self.window.read_dword(offset)

    async def write(self, offset, value):
        await self.window.write_dword(offset, value)

    async def load(self, address, length):
        return bytes(await self.memory.read(address - MEMORY_BASE, length))

    async def store(self, address, data):
        await self.memory.write(address - MEMORY_BASE, data)

    def allocate(self, length, align):
        self.free = -(-self.free // align) * align + length
        assert self.free <= MEMORY_BYTES
        return MEMORY_BASE + self.free - length

    async def pause(self, cycles):
        await ClockCycles(self.clock, cycles)


async def forward(platform, ports):
    """The switch: each frame goes to the card whose address it begins with."""
    while True:
        frame = await platform.sink.recv()
        destination = int.from_bytes(bytes(frame.tdata[:6]), "little")
        await ports[destination].source.send(bytes(frame.tdata))


async def cards(dut):
    """Both cards after reset, with the firmware loaded and a switch between them."""
    Clock(dut.clock, 8, "ns").start()
    platforms, ports = [], {}
    for number, pins in enumerate((dut.a, dut.b)):
        mac = 0x0200_0000_0002 + (number << 40)
        pins.strap_mac.value = mac
        pins.strap_seed.value = 0x5EED + number
        pins.reset.value = 1
        platforms.append(Platform(dut, pins))
        ports[mac] = platforms[-1]
    await ClockCycles(dut.clock, 4)
    for pins in (dut.a, dut.b):
        pins.reset.value = 0
    for platform in platforms:
        cocotb.start_soon(forward(platform, ports))
    both = [Card(BOOK, platform) for platform in platforms]
    starts = [cocotb.start_soon(card.start(FIRMWARE)) for card in both]
    for start, mac in zip(starts, ports):
        assert (await start)["mac"] == mac
    return both


class Side:
    """One endpoint, with memory registered for it and a byte on either side of a buffer that nobody may touch."""

    GUARD = 0xA5
    CONTEXT = 7

    def __init__(self, card):
        self.card = card

    async def open(self):
        self.domain = (await self.card.command("OpenDomain"))["domain"]
        self.endpoint = await Endpoint(self.card, self.domain).open()
        self.base = self.card.platform.allocate(1 << 16, 1)
        self.key = await self.card.register(self.domain, self.base, 1 << 16, "RIGHT_LOCAL_READ", "RIGHT_LOCAL_WRITE")
        return self

    async def send(self, pair, tag, data, *flags, at=0, **fields):
        address = self.base + at
        await self.card.platform.store(address, data)
        fields = {"address": address, "length": len(data), "key": self.key, "context": self.CONTEXT} | fields
        return await self.endpoint.send("TaggedSend", *flags, pair=pair.place, match_bits=tag, **fields)

    async def receive(self, pair, tag, length, *flags, at=0, **fields):
        address = self.base + at
        await self.card.platform.store(address - 1 if at else address, bytes([self.GUARD]) * (length + 2))
        fields = {"address": address, "length": length, "key": self.key, "context": self.CONTEXT} | fields
        return await self.endpoint.list("TaggedReceive", *flags, pair=pair.place, match_bits=tag, **fields)

    async def received(self, length, at):
        """The bytes of a buffer, after a look at those around it."""
        data = await self.card.platform.load(self.base + at - 1, length + 2)
        assert data[0] == data[-1] == self.GUARD, "a byte beside the buffer was written"
        return data[1:-1]


async def sides(dut):
    """An endpoint on each card, and a pair between them."""
    both = [await Side(card).open() for card in await cards(dut)]
    return both, await connect(*(side.endpoint for side in both))


async def refused(command, status, detail=None):
    """A command that has to be refused like this."""
    try:
        await command
    except Refused as refusal:
        assert refusal.status == status, refusal
        assert detail in (None, refusal.detail), refusal
        return
    raise AssertionError(f"not refused with {status}")


@cocotb.test()
async def messages_of_any_length_and_alignment_arrive_whole_and_in_order(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    dice = random.Random(1)
    lengths = [0, 1, 7, 8, 9, 63, 64, 500, 1023, BOOK.value["EAGER_MAX"]]
    # More than the rings and queues have entries, so that every index wraps, and every phase flips.
    for number, length in enumerate(lengths * 2):
        data, at = dice.randbytes(length), dice.randrange(1, 5000)
        waits = number % 2 == 0
        receive = None if waits else await b.receive(to_a, number, length, at=at)
        immediate = dice.getrandbits(64)
        send = await a.send(to_b, number, data, at=dice.randrange(8), immediate=immediate)
        if waits:
            # In a slot of the pair by the time that the send completes.
            assert (await a.endpoint.wait(send))["status"] == "Success"
            probe = await b.endpoint.list("Probe", pair=to_a.place, match_bits=number, context=b.CONTEXT)
            assert (await b.endpoint.wait(probe))["length"] == length
            receive = await b.receive(to_a, number, length, at=at)
        completion = await b.endpoint.wait(receive)
        assert (completion["status"], completion["kind"]) == ("Success", "Receive")
        assert (completion["length"], completion["match_bits"]) == (length, number)
        assert (completion["immediate"], completion["pair"]) == (immediate, to_a.place)
        assert await b.received(length, at) == data, f"message {number} of {length} bytes"
        if not waits:
            completion = await a.endpoint.wait(send)
            assert (completion["status"], completion["kind"]) == ("Success", "Send")
    assert await b.card.counter("Unexpected") == len(lengths)
    assert await b.card.counter("Expected") == len(lengths)
    assert (await to_b.query())["state"] == "Connected"


@cocotb.test()
async def a_short_payload_is_carried_by_its_request_alone(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    assert a.card.identity["capabilities"] & BOOK.value["CAPABILITY_INLINE"]
    most = BOOK.value["INLINE_BYTES"]
    for length in (0, 1, 5, most):
        data = bytes(range(1, length + 1))
        # Bytes beyond the length are anything.
        parts = struct.unpack("<IIQ", data.ljust(most, b"\xff"))
        fields = dict(zip(("target", "inline1", "inline2"), parts, strict=True))
        fields |= {"pair": to_b.place, "match_bits": length, "context": a.CONTEXT, "length": length}
        receive = await b.receive(to_a, length, length, at=100)
        send = await a.endpoint.send("TaggedSend", "FLAG_INLINE", **fields)
        assert (await a.endpoint.wait(send))["status"] == "Success"
        assert (await b.endpoint.wait(receive))["status"] == "Success"
        assert await b.received(length, 100) == data
    too_long = await a.endpoint.send("TaggedSend", "FLAG_INLINE", pair=to_b.place, length=most + 1)
    assert (await a.endpoint.wait(too_long))["status"] == "InvalidRequest"


@cocotb.test()
async def what_is_wrong_with_a_request_is_its_status_and_the_pair_goes_on(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    longest = BOOK.value["EAGER_MAX"]

    async def ends(side, request, status):
        completion = await side.endpoint.wait(await request)
        assert completion["status"] == status, completion

    await ends(a, a.send(to_b, 1, b"secret", key=a.key ^ 1 << 31), "LocalProtection")
    await ends(a, a.send(to_b, 1, b"secret", address=a.base + (1 << 16) - 3), "LocalProtection")
    await ends(a, a.send(to_b, 1, b"secret", length=longest + 1), "TooLong")
    await ends(a, a.send(to_b, 1, b"secret", "FLAG_GATHER"), "InvalidRequest")
    await ends(a, a.endpoint.send(pair=to_b.place + 1), "InvalidPair")
    await ends(a, a.endpoint.send("Probe", pair=to_b.place), "InvalidRequest")
    await ends(a, a.endpoint.send("CancelSend", pair=to_b.place, target=99), "TooLate")
    await ends(b, b.endpoint.list("Probe", "FLAG_ANY_SOURCE"), "NoMessage")
    nowhere = await a.card.register(a.domain, NOWHERE, 64, "RIGHT_LOCAL_READ")
    await ends(a, a.send(to_b, 1, b"secret", key=nowhere, address=NOWHERE), "MemoryError")
    await ends(a, a.send(to_b, 1, b"no receive", "FLAG_READY"), "NotReady")
    # None of them has left the card, or cost a credit.
    receive = await b.receive(to_a, 1, 3, at=100)
    await ends(a, a.send(to_b, 1, b"open"), "Success")
    completion = await b.endpoint.wait(receive)
    assert (completion["status"], completion["length"]) == ("Truncated", 4)
    assert await b.received(3, 100) == b"ope"
    assert await a.endpoint.event() is None
    status = await to_b.query()
    assert (status["available"], status["unacknowledged"]) == (BOOK.value["DEFAULT_CREDITS"], 0)


@cocotb.test()
async def a_pair_that_sends_before_its_peer_is_connected_fails_at_both_ends(dut):
    a, b = [await Side(card).open() for card in await cards(dut)]
    to_b, to_a = Pair(a.endpoint), Pair(b.endpoint)
    told_b, told_a = await to_b.open(), await to_a.open()
    await to_b.connect(told_a)
    first = await a.send(to_b, 1, b"dropped")
    await a.card.platform.pause(2000)
    assert await b.card.counter("PairErrors") == 1
    await to_a.connect(told_b)
    second = await a.send(to_b, 2, b"a gap")
    for request in (first, second):
        assert (await a.endpoint.wait(request))["status"] == "LinkError"
    for side, pair in ((a, to_b), (b, to_a)):
        event = await side.endpoint.wait_event()
        assert (event["cause"], event["pair"]) == ("LinkError", pair.place)
        sticky = await side.card.platform.read(side.endpoint.page + BOOK.value["STICKY"])
        assert sticky == 1 << BOOK.code["Cause"]["LinkError"]
        assert (await pair.query())["state"] == "Failed"
        await pair.close()
    # As the book says: close both, and connect anew.
    to_b, to_a = await connect(a.endpoint, b.endpoint)
    receive = await b.receive(to_a, 3, 5, at=8)
    await a.send(to_b, 3, b"again")
    assert (await b.endpoint.wait(receive))["status"] == "Success"
    assert await b.received(5, 8) == b"again"


@cocotb.test()
async def a_card_talks_to_itself_and_closes_in_order(dut):
    card, _ = await cards(dut)
    one, other = [await Side(card).open() for _ in range(2)]
    here, there = await connect(one.endpoint, other.endpoint)
    receive = await other.receive(there, 5, 16, "FLAG_ANY_SOURCE", at=3, ignore_bits=2**64 - 1)
    line = BOOK.value["FIRST_ENDPOINT_INTERRUPT"] + card.place(other.endpoint.id)
    await card.platform.write(other.endpoint.page + BOOK.value["COMPLETION_ARM"], 0)
    assert not int(card.platform.interrupts.value) >> line & 1
    await one.send(here, 6, b"to the same card")
    while not int(card.platform.interrupts.value) >> line & 1:
        await RisingEdge(card.platform.clock)
    completion = await other.endpoint.wait(receive, limit=1)
    assert (completion["status"], completion["match_bits"], completion["pair"]) == ("Success", 6, there.place)
    assert await other.received(16, 3) == b"to the same card"

    await refused(card.command("CloseDomain", domain=one.domain), "Busy")
    await refused(card.command("OpenPair", endpoint=one.endpoint.id, credits=17, slots=0), "InvalidArgument", 1)
    await refused(card.command("OpenPair", endpoint=one.endpoint.id, credits=1, slots=8), "InvalidArgument", 2)
    told = dict.fromkeys(["remote_pair", "remote_endpoint", "remote_epoch", "remote_nonce"], 0)
    strange = card.command("ConnectPair", pair=here.id, remote_mac=1 << 48, remote_credits=1, **told)
    await refused(strange, "InvalidArgument", 6)

    posted = await other.receive(there, 5, 16, at=3)
    cancelled = await other.receive(there, 5, 16, at=3)
    cancel = await other.endpoint.list("Cancel", target=cancelled)
    assert (await other.endpoint.wait(cancelled))["status"] == "Cancelled"
    other.endpoint.outstanding.remove(cancel)
    await there.close()
    assert (await other.endpoint.wait(posted))["status"] == "Flushed"
    await refused(there.close(), "NotFound")
    for side in (one, other):
        await side.endpoint.close()
        await refused(side.endpoint.close(), "NotFound")
        await card.command("DeregisterRegion", key=side.key)
        await refused(card.command("DeregisterRegion", key=side.key), "NotFound")
        await card.command("CloseDomain", domain=side.domain)


@cocotb.test()
async def a_card_that_was_in_use_starts_again_by_its_reset_register(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    # Left as a driver that dies leaves it: a receive posted, a message in a slot, everything open.
    await b.receive(to_a, 1, 8, at=8)
    await a.endpoint.wait(await a.send(to_b, 2, b"unexpected"))
    for side in (a, b):
        await side.card.start(FIRMWARE)
        await refused(side.card.command("CloseEndpoint", endpoint=side.endpoint.id), "NotFound")
    assert await b.card.counter("Unexpected") == 0
    a, b = [await Side(card).open() for card in (a.card, b.card)]
    to_b, to_a = await connect(a.endpoint, b.endpoint)
    probe = await b.endpoint.list("Probe", "FLAG_ANY_SOURCE", match_bits=2, context=b.CONTEXT)
    assert (await b.endpoint.wait(probe))["status"] == "NoMessage"
    receive = await b.receive(to_a, 3, 4, at=8)
    assert (await a.endpoint.wait(await a.send(to_b, 3, b"anew")))["status"] == "Success"
    assert (await b.endpoint.wait(receive))["status"] == "Success"
    assert await b.received(4, 8) == b"anew"


async def caused(side, cause, pair):
    """The `info` of the side's next event, which is this one."""
    event = await side.endpoint.wait_event()
    assert (event["cause"], event["pair"]) == (cause, pair.place), event
    return event["info"]


@cocotb.test()
async def cards_connect_endpoints_by_themselves(dut):
    a, b = [await Side(card).open() for card in await cards(dut)]
    to_b, to_a = Pair(a.endpoint), Pair(b.endpoint)
    place = b.card.place(b.endpoint.id)
    address = {"remote_mac": b.card.identity["mac"], "remote_endpoint": place, "timeout": 0}
    for wrong, reason in (({}, "NotAccepting"), ({"remote_endpoint": place + 1}, "NoEndpoint")):
        await to_b.meet("Connect", **address | wrong)
        info = await caused(a, "ConnectFailed", to_b)
        assert BOOK.name("ConnectReason", info & 0xFF) == reason
        assert (await to_b.query())["state"] == "Refused"
        await to_b.close()

    await to_a.meet("Accept")
    assert (await to_a.query())["state"] == "Accepting"
    await to_b.meet("Connect", **address)
    await caused(a, "PairConnected", to_b)
    # At once: the other end's gates take frames by now, whatever its host knows.
    send = await a.send(to_b, 9, b"by the cards")
    await caused(b, "PairConnected", to_a)
    receive = await b.receive(to_a, 9, 12, at=16)
    assert (await b.endpoint.wait(receive))["status"] == "Success"
    assert await b.received(12, 16) == b"by the cards"
    assert (await a.endpoint.wait(send))["status"] == "Success"


@cocotb.test()
async def endpoints_that_part_in_order_see_no_failure(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    last = await b.receive(to_a, 10, 12, at=16)
    await to_b.disconnect()
    await caused(b, "PeerClosed", to_a)
    assert (await b.endpoint.wait(last))["status"] == "PeerClosed"
    await caused(a, "Disconnected", to_b)
    for pair in (to_b, to_a):
        for _ in range(100):
            if (state := (await pair.query())["state"]) == "Disconnected":
                break
        assert state == "Disconnected"
        await pair.close()
        await refused(pair.close(), "NotFound")
    assert [await side.endpoint.event() for side in (a, b)] == [None, None]
