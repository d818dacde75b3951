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


async def cards(dut, start=True):
    """Both cards after reset, with the firmware loaded, unless they aren't to be started, and a switch between them."""
    Clock(dut.clock, 8, "ns").start()
    Clock(dut.processor_clock, 16, "ns").start()
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
    if not start:
        return both
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

    async def open(self, **sizes):
        self.domain = (await self.card.command("OpenDomain"))["domain"]
        self.endpoint = await Endpoint(self.card, self.domain).open(**sizes)
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
async def a_gather_is_one_message_of_its_segments(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    assert a.card.identity["capabilities"] & BOOK.value["CAPABILITY_GATHER"]
    dice, bound = random.Random(2), BOOK.value["EAGER_MAX"]
    # A second region, so that segments of one message have different keys.
    other = a.card.platform.allocate(1 << 12, 1)
    key = await a.card.register(a.domain, other, 1 << 12, "RIGHT_LOCAL_READ")
    regions = [(a.base, a.key), (other, key)]
    fields = {"pair": to_b.place, "context": a.CONTEXT}

    async def segments(lengths):
        """Segments of these lengths, one behind the other in turns of the two regions, and their bytes."""
        found, whole, at = [], b"", 0
        for number, length in enumerate(lengths):
            base, key = regions[number % 2]
            at += dice.randrange(1, 9)
            data = dice.randbytes(length)
            await a.card.platform.store(base + at, data)
            found.append((base + at, length, key))
            whole, at = whole + data, at + length
        return found, whole

    most = BOOK.value["MAX_SEGMENTS"]
    for tag, lengths in enumerate([(1, 2), (9, 0, 7), (0, 0, 0, 5), (100, 1, 300, 3), (bound // most,) * most, (0, 0)]):
        parts, data = await segments(lengths)
        receive = await b.receive(to_a, tag, len(data), at=100)
        send = await a.endpoint.gather(parts, match_bits=tag, **fields)
        assert (await a.endpoint.wait(send))["status"] == "Success"
        completion = await b.endpoint.wait(receive)
        assert (completion["status"], completion["length"]) == ("Success", len(data))
        assert await b.received(len(data), 100) == data, lengths

    async def ends(parts, status, **changed):
        send = await a.endpoint.gather(parts, **fields, **changed)
        assert (await a.endpoint.wait(send))["status"] == status

    parts, _ = await segments((8, 8))
    (first, _, _), (second, _, _) = parts
    await ends([parts[0], (second, 8, key ^ 1 << 31)], "LocalProtection")
    await ends([(first, 8, a.key), (other + (1 << 12) - 7, 8, key)], "LocalProtection")
    await ends([(first, bound, a.key), (second, 1, key)], "TooLong")
    # A second entry that is none of this send's goes with it, and one that is a request is looked at for itself.
    await ends(parts, "InvalidRequest", second={"request": 2**32 - 1})
    alone = await a.endpoint.send("Segments")
    completion = await a.endpoint.wait(alone)
    assert (completion["status"], completion["kind"]) == ("InvalidRequest", "Send")
    receive = await b.receive(to_a, 99, 8, at=100)
    first = a.endpoint.sends.layout.pack(
        opcode=BOOK.code["Opcode"]["TaggedSend"], flags=BOOK.value["FLAG_GATHER"], request=1 << 20, **fields
    )
    address, length, key = parts[0]
    whole = {"address": address, "length": length, "key": key, "match_bits": 99}
    behind = a.endpoint.sends.layout.pack(opcode=BOOK.code["Opcode"]["TaggedSend"], request=1 << 21, **fields, **whole)
    a.endpoint.outstanding |= {1 << 20, 1 << 21}
    await a.endpoint.sends.post(first, behind)
    assert (await a.endpoint.wait(1 << 20))["status"] == "InvalidRequest"
    assert (await a.endpoint.wait(1 << 21))["status"] == "Success"
    assert (await b.endpoint.wait(receive))["length"] == 8
    assert await a.endpoint.event() is None


@cocotb.test()
async def a_claimed_message_is_its_claims_until_it_is_received_or_discarded(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    texts = [b"first", b"second", b"third", b"fourth"]
    for text in texts:
        assert (await a.endpoint.wait(await a.send(to_b, 7, text)))["status"] == "Success"

    async def claim():
        request = await b.endpoint.list("Claim", pair=to_a.place, match_bits=7, context=b.CONTEXT)
        completion = await b.endpoint.wait(request)
        assert completion["kind"] == "Claim"
        return completion

    async def use(opcode, handle, status, length=0):
        """Uses a claim for a buffer of so many bytes, and returns what is in it."""
        fields = {"target": handle}
        if opcode == "ReceiveClaimed":
            await b.card.platform.store(b.base + 99, bytes([b.GUARD]) * (length + 2))
            fields |= {"address": b.base + 100, "length": length, "key": b.key}
        completion = await b.endpoint.wait(await b.endpoint.list(opcode, **fields))
        assert completion["status"] == status, completion
        return completion

    async def resting():
        """The peer's messages that hold an envelope. The credit of one that was used travels back by itself."""
        await a.card.platform.pause(2000)
        return BOOK.value["DEFAULT_CREDITS"] - (await to_b.query())["available"]

    claims = [await claim() for _ in texts[:3]]
    assert [completion["length"] for completion in claims] == [5, 6, 5]
    assert all(completion["status"] == "Success" and completion["pair"] == to_a.place for completion in claims)
    handles = [completion["handle"] for completion in claims]
    # A receive gets what nobody has claimed, and then there is nothing.
    receive = await b.receive(to_a, 7, 6, at=200)
    assert (await b.endpoint.wait(receive))["status"] == "Success"
    assert await b.received(6, 200) == b"fourth"
    assert (await claim())["status"] == "NoMessage"
    assert await resting() == 3

    # In whatever order.
    completion = await use("ReceiveClaimed", handles[1], "Success", 6)
    assert (completion["kind"], completion["match_bits"], completion["pair"]) == ("Receive", 7, to_a.place)
    assert await b.received(6, 100) == b"second"
    assert (await use("ReceiveClaimed", handles[0], "Truncated", 4))["length"] == 5
    assert await b.received(4, 100) == b"firs"
    assert await resting() == 1
    # A handle is used once; one that was refused for its buffer is still good.
    await use("ReceiveClaimed", handles[0], "InvalidClaim", 4)
    await use("Discard", handles[1], "InvalidClaim")
    fields = {"target": handles[2], "address": b.base, "length": 5, "key": b.key ^ 1 << 31}
    completion = await b.endpoint.wait(await b.endpoint.list("ReceiveClaimed", **fields))
    assert completion["status"] == "LocalProtection"
    assert (await use("Discard", handles[2], "Success"))["kind"] == "Discard"
    assert await resting() == 0

    # What is claimed of a pair goes with it.
    assert (await a.endpoint.wait(await a.send(to_b, 7, b"late")))["status"] == "Success"
    handle = (await claim())["handle"]
    await to_a.close()
    await use("ReceiveClaimed", handle, "InvalidClaim", 4)


@cocotb.test()
async def messages_fill_the_buffer_of_a_multi_receive_one_behind_the_other(dut):
    (a, b), (to_b, to_a) = await sides(dut)
    dice = random.Random(3)
    length, min_free, at = 100, 20, 300

    async def taken(request, filled, data, status="Success"):
        """The next message of a multi-receive, behind so many bytes: whether the receive stays."""
        completion = await b.endpoint.wait(request)
        assert (completion["status"], completion["kind"], completion["length"]) == (status, "Receive", len(data))
        written = data[: length - filled]
        assert await b.card.platform.load(b.base + at + filled, len(written)) == written
        return completion["more"]

    # Two wait for it, the others come later. With the seventh 9 bytes are left, which is less than `min_free`.
    texts = [dice.randbytes(13) for _ in range(7)]
    for text in texts[:2]:
        await a.endpoint.wait(await a.send(to_b, 7, text))
    multi = await b.receive(to_a, 7, length, "FLAG_MULTI", at=at, min_free=min_free)
    for number, text in enumerate(texts):
        if number >= 2:
            await a.send(to_b, 7, text)
        assert await taken(multi, 13 * number, text) == (number < 6), number
    while await a.endpoint.poll() is not None:
        pass
    assert await b.received(length, at) == b"".join(texts) + bytes([b.GUARD]) * 9

    # One that is longer than what is left is cut off, and the last.
    multi = await b.receive(to_a, 7, length, "FLAG_MULTI", at=at)
    first, second = dice.randbytes(90), dice.randbytes(30)
    await a.endpoint.wait(await a.send(to_b, 7, first))
    await a.endpoint.wait(await a.send(to_b, 7, second))
    assert await taken(multi, 0, first)
    assert not await taken(multi, 90, second, "Truncated")
    assert await b.received(length, at) == (first + second)[:length]

    # It can be cancelled after any message.
    multi = await b.receive(to_a, 7, length, "FLAG_MULTI", at=at)
    await a.endpoint.wait(await a.send(to_b, 7, first))
    assert await taken(multi, 0, first)
    cancel = await b.endpoint.list("Cancel", target=multi)
    completion = await b.endpoint.wait(multi)
    assert (completion["status"], completion["more"]) == ("Cancelled", False)
    b.endpoint.outstanding.remove(cancel)

    # With no entry of the completion queue to spare it ends with its first message.
    multi = await b.receive(to_a, 7, length, "FLAG_MULTI", at=at)
    others = [await b.receive(to_a, 8, 0) for _ in range(b.endpoint.completions.size - 1)]
    await a.endpoint.wait(await a.send(to_b, 7, first))
    assert not await taken(multi, 0, first)
    for other in others:
        await a.endpoint.wait(await a.send(to_b, 8, b""))
        assert (await b.endpoint.wait(other))["status"] == "Success"
    bad = await b.receive(to_a, 7, 8, min_free=1)
    assert (await b.endpoint.wait(bad))["status"] == "InvalidRequest"


@cocotb.test()
async def a_card_after_power_on_is_as_the_book_says(dut):
    card, _ = await cards(dut, start=False)
    value, platform = BOOK.value, card.platform
    for register, expected in (("ID", "MAGIC"), ("ABI", "ABI_VERSION")):
        assert await platform.read(value[register]) == value[expected]
    # The processor is held, the firmware is not there, and no command was given.
    for register in ("CONTROL", "MAILBOX_REQUEST", "MAILBOX_ANSWER", "FIRMWARE_START"):
        assert await platform.read(value[register]) == 0, register
    ready = 0
    for _ in range(value["READY_TIMEOUT"] // 100):
        ready = await platform.read(value["STATUS"])
        if ready:
            break
        await platform.pause(100)
    assert ready == value["STATUS_READY"]
    # The loader says where its next word goes.
    await platform.write(value["LOADER_ADDRESS"], value["MEMORY_BASE"])
    await platform.write(value["LOADER_DATA"], 0)
    assert await platform.read(value["LOADER_ADDRESS"]) == value["MEMORY_BASE"] + 4
    assert (await card.start(FIRMWARE, reset=False))["abi_version"] == value["ABI_VERSION"]
    assert await platform.read(value["FIRMWARE_START"]) != 0
    # While the processor runs the loader does nothing.
    await platform.write(value["LOADER_ADDRESS"], value["MEMORY_BASE"])
    assert await platform.read(value["LOADER_ADDRESS"]) != value["MEMORY_BASE"]


@cocotb.test()
async def a_send_behind_one_that_found_the_queue_full_overtakes_it(dut):
    both = await cards(dut)
    a, b = await Side(both[0]).open(send=32, completions=32), await Side(both[1]).open()
    to_b, to_a = await connect(a.endpoint, b.endpoint)
    credits = BOOK.value["DEFAULT_CREDITS"]
    room = credits + to_b.sends

    async def receive():
        """The number of the next message."""
        completion = await b.endpoint.wait(await b.receive(to_a, 7, 1, at=100))
        assert completion["status"] == "Success"
        return completion["immediate"]

    sends = [await a.send(to_b, 7, b"x", immediate=number) for number in range(credits)]
    # These are safe at the peer, in all the envelopes that it has given, and the card holds them no more.
    for send in sends:
        assert (await a.endpoint.wait(send))["status"] == "Success"
    sends += [await a.send(to_b, 7, b"x", immediate=number) for number in range(credits, room + 1)]
    completion = await a.endpoint.wait(sends[room])
    assert completion["status"] == "QueueFull"
    # Room for one more, which the card takes though the one before it was refused.
    got = [await receive()]
    await a.endpoint.wait(sends[credits])
    sends.append(await a.send(to_b, 7, b"x", immediate=room + 1))
    got += [await receive(), await receive()]
    sends[room] = await a.send(to_b, 7, b"x", immediate=room)
    got += [await receive() for _ in range(room - 1)]
    assert got == [*range(room), room + 1, room]


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
async def a_pair_that_sends_before_its_peer_is_connected_sends_again(dut):
    a, b = [await Side(card).open() for card in await cards(dut)]
    to_b, to_a = Pair(a.endpoint), Pair(b.endpoint)
    told_b, told_a = await to_b.open(), await to_a.open()
    await to_b.connect(told_a)
    first = await a.send(to_b, 1, b"dropped")
    await a.card.platform.pause(2000)
    assert await b.card.counter("PairErrors") >= 1
    await to_a.connect(told_b)
    second = await a.send(to_b, 1, b"behind", at=64)
    for at, sent in ((128, b"dropped"), (160, b"behind")):
        receive = await b.receive(to_a, 1, len(sent), at=at)
        assert (await b.endpoint.wait(receive))["status"] == "Success"
        assert await b.received(len(sent), at) == sent
    for request in (first, second):
        assert (await a.endpoint.wait(request))["status"] == "Success"
    assert await a.endpoint.event() is None


@cocotb.test()
async def a_peer_that_never_answers_fails_the_pair(dut):
    a, b = [await Side(card).open() for card in await cards(dut)]
    to_b, to_a = Pair(a.endpoint), Pair(b.endpoint)
    told_b, told_a = await to_b.open(), await to_a.open()
    await to_b.connect(told_a)
    sent = [await a.send(to_b, 1, b"nobody") for _ in range(2)]
    await a.card.platform.pause(60 * BOOK.value["ACKNOWLEDGE_TIMEOUT"])
    for request in sent:
        assert (await a.endpoint.wait(request))["status"] == "PeerFailed"
    assert await b.card.counter("PairErrors") > 2 * BOOK.value["RETRY_LIMIT"]
    event = await a.endpoint.wait_event()
    assert (event["cause"], event["pair"]) == ("PeerFailed", to_b.place)
    assert event["info"] == BOOK.code["Status"]["PeerFailed"]
    sticky = await a.card.platform.read(a.endpoint.page + BOOK.value["STICKY"])
    assert sticky == 1 << BOOK.code["Cause"]["PeerFailed"]
    assert (await to_b.query())["state"] == "Failed"
    await to_b.close()
    await to_a.close()
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
    await refused(card.command("OpenPair", endpoint=one.endpoint.id, credits=65, slots=0), "InvalidArgument", 1)
    await refused(card.command("OpenPair", endpoint=one.endpoint.id, credits=1, slots=8), "InvalidArgument", 2)
    told = dict.fromkeys(["remote_pair", "remote_endpoint", "remote_epoch", "remote_nonce", "remote_job"], 0)
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
