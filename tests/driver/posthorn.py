"""A driver for Posthorn cards, written from the book's pages alone: "Writing a driver", "Memory and messages",
"Requests of other kinds" and the tables behind them.

It knows nothing of the simulator. Its platform gives it four things, all coroutines but `allocate`:

    read(offset), write(offset, value)          the register window, 32-bit words
    load(address, length), store(address, data) memory that the card reaches, in order with the window
    allocate(length, align)                     some of that memory, as a card address
    pause(cycles)                               time
"""

import struct
from collections import deque

POLL = 50
"""Cycles between two looks."""


class Refused(Exception):
    """The firmware refused a command: the status's name, and word 1 of the answer."""

    def __init__(self, command, status, detail):
        super().__init__(f"{command}: {status} ({detail})")
        self.status, self.detail = status, detail


class Card:
    """A card, from reset to closed."""

    def __init__(self, book, platform):
        self.book, self.platform = book, platform

    async def _until(self, what, limit, condition):
        for _ in range(0, limit, POLL):
            if await condition():
                return
            await self.platform.pause(POLL)
        raise TimeoutError(what)

    async def start(self, elf, reset=True):
        """Brings the card up with the firmware in `elf`, the bytes of a file. Right after power-on it needs no `reset`. Returns what it is."""
        value, platform = self.book.value, self.platform

        async def status(bit):
            return await platform.read(value["STATUS"]) & bit

        async def quiet():
            return not await platform.read(value["CONTROL"]) & value["CONTROL_RESET"]

        assert await platform.read(value["ID"]) == value["MAGIC"]
        assert await platform.read(value["ABI"]) == value["ABI_VERSION"], "not the book of this card"
        if reset:
            await platform.write(value["CONTROL"], value["CONTROL_RESET"])
            await self._until("reset", value["READY_TIMEOUT"], quiet)
        await self._until("STATUS_READY", value["READY_TIMEOUT"], lambda: status(value["STATUS_READY"]))
        await self._load(elf)
        await platform.write(value["CONTROL"], value["CONTROL_RUN"])
        await self._until("STATUS_FIRMWARE", value["READY_TIMEOUT"], lambda: status(value["STATUS_FIRMWARE"]))
        self.identity = await self.command("Identify")
        assert self.identity["abi_version"] == value["ABI_VERSION"]
        return self.identity

    async def _load(self, elf):
        assert elf[:6] == b"\x7fELF\x01\x01", "a 32-bit little-endian ELF file"
        (table,) = struct.unpack_from("<I", elf, 28)
        size, count = struct.unpack_from("<HH", elf, 42)
        for header in range(table, table + size * count, size):
            kind, offset, _, address, length = struct.unpack_from("<5I", elf, header)
            if kind != 1 or length == 0:
                continue
            data = elf[offset : offset + length]
            data += bytes(-length % 4)
            await self.platform.write(self.book.value["LOADER_ADDRESS"], address)
            for (word,) in struct.iter_unpack("<I", data):
                await self.platform.write(self.book.value["LOADER_DATA"], word)

    async def command(self, name, **arguments):
        """Runs a mailbox command and returns its results by name."""
        value, platform = self.book.value, self.platform
        code, places, results = self.book.command[name]
        assert arguments.keys() == places.keys(), f"{name} takes {list(places)}"

        async def answered():
            return await platform.read(value["MAILBOX_ANSWER"]) == number

        number = await platform.read(value["MAILBOX_REQUEST"])
        await self._until("an earlier command", value["COMMAND_TIMEOUT"], answered)
        number = (number + 1) % 2**32
        await platform.write(value["MAILBOX_COMMAND"], code)
        for argument, words in places.items():
            for k, word in enumerate(words):
                await platform.write(value["MAILBOX_COMMAND"] + 4 * word, arguments[argument] >> 32 * k & 0xFFFFFFFF)
        await platform.write(value["MAILBOX_REQUEST"], number)
        await self._until(name, value["COMMAND_TIMEOUT"], answered)

        async def result(word):
            return await platform.read(value["MAILBOX_RESULT"] + 4 * word)

        status = self.book.name("MailboxStatus", await result(0))
        if status != "Ok":
            raise Refused(name, status, await result(1))
        return {
            name: sum([await result(word) << 32 * k for k, word in enumerate(words)]) for name, words in results.items()
        }

    async def register(self, domain, address, length, *rights):
        """Registers memory and returns its key."""
        region = {"domain": domain, "address": address, "length": length, "space": self.book.value["FLAT_SPACE"]}
        region["rights"] = sum(self.book.value[right] for right in rights)
        return (await self.command("RegisterRegion", **region))["key"]

    async def counter(self, name):
        """A counter of the card."""
        number = self.book.code["Counter"][name]
        return (await self.command("ReadCounter", counter=number))["value"]

    def place(self, ident):
        """The place that an id names."""
        return ident & (1 << self.book.value["ID_INDEX_BITS"]) - 1


class Ring:
    """A ring that the driver writes."""

    def __init__(self, card, base, size, layout, page, tail, head):
        self.card, self.base, self.size, self.layout = card, base, size, layout
        self.tail_register, self.head_register = page + tail, page + head
        self.tail = 0

    async def post(self, *entries):
        """Writes entries that belong together, and rings for all of them once."""
        platform = self.card.platform
        while (self.tail - await platform.read(self.head_register)) % 2**16 + len(entries) > self.size:
            await platform.pause(POLL)
        for entry in entries:
            await platform.store(self.base + self.tail % self.size * len(entry), entry)
            self.tail = (self.tail + 1) % 2**16
        await platform.write(self.tail_register, self.tail)


class Queue:
    """A queue that the card writes. Of an entry of kind `k` it writes the last `words[k]` words alone, and all if there are no kinds."""

    def __init__(self, card, base, size, layout, head, words=None):
        self.card, self.base, self.size, self.layout, self.words = card, base, size, layout, words
        self.head_register = head
        self.head = 0

    async def poll(self):
        """The next entry, if it is there."""
        platform, entry_bytes = self.card.platform, self.layout.size
        at = self.base + self.head % self.size * entry_bytes
        phase, _ = self.layout.fields["phase"]
        last = int.from_bytes(await platform.load(at + entry_bytes - 8, 8), "little")
        if last >> phase % 64 & 1 != 1 - self.head // self.size % 2:
            return None
        entry = self.layout.unpack(last.to_bytes(8, "little"), entry_bytes - 8)
        written = 8 * self.words[entry["kind"]] if self.words else entry_bytes
        unwritten = entry_bytes - written
        entry = self.layout.unpack(await platform.load(at + unwritten, written), unwritten)
        self.head = (self.head + 1) % 2**16
        await platform.write(self.head_register, self.head)
        return entry


class Endpoint:
    """An endpoint with its rings and queues. Sizes are powers of two."""

    def __init__(self, card, domain):
        self.card, self.domain = card, domain
        self.outstanding, self.next_request = set(), 0
        self.kept = deque()

    async def open(self, send=4, receive=4, completions=8, events=4):
        card, value, layout = self.card, self.card.book.value, self.card.book.layout
        work, completion, event = value["REQUEST_BYTES"], value["COMPLETION_BYTES"], value["EVENT_BYTES"]
        sizes = {"send": (send, work), "list": (receive, work), "completion": (completions, completion), "event": (events, event)}
        bases, arguments = {}, {"completion_owner": value["NO_ENDPOINT"], "job": 0, "pair_sends": 0, "space": value["FLAT_SPACE"]}
        for ring, (size, entry_bytes) in sizes.items():
            bases[ring] = card.platform.allocate(size * entry_bytes, size * entry_bytes)
            arguments |= {f"{ring}_log2": size.bit_length() - 1, f"{ring}_base": bases[ring]}
        for queue in ("completion", "event"):
            size, entry_bytes = sizes[queue]
            await card.platform.store(bases[queue], bytes(size * entry_bytes))
        answer = await card.command("OpenEndpoint", domain=self.domain, **arguments)
        self.id, self.epoch = answer["endpoint"], answer["epoch"]
        page = (value["FIRST_ENDPOINT_PAGE"] + card.place(self.id)) * value["PAGE_BYTES"]
        self.sends = Ring(card, bases["send"], send, layout["SendRequest"], page, value["SEND_TAIL"], value["SEND_HEAD"])
        self.lists = Ring(card, bases["list"], receive, layout["ListRequest"], page, value["LIST_TAIL"], value["LIST_HEAD"])
        head = page + value["COMPLETION_HEAD"]
        words = card.book.words["CompletionKind"]
        self.completions = Queue(card, bases["completion"], completions, layout["Completion"], head, words)
        self.events = Queue(card, bases["event"], events, layout["Event"], page + value["EVENT_HEAD"])
        self.page = page
        return self

    async def _post(self, ring, opcode, flags, fields, second=None):
        # One entry of the completion queue for each request; those that were polled and kept are consumed already.
        assert len(self.outstanding) < self.completions.size, "poll first"
        request = self.next_request
        self.next_request = (request + 1) % 2**32
        opcode = self.card.book.code["Opcode"][opcode]
        flags = sum(self.card.book.value[flag] for flag in flags)
        self.outstanding.add(request)
        entries = [ring.layout.pack(opcode=opcode, flags=flags, request=request, **fields)]
        if second is not None:
            opcode = self.card.book.code["Opcode"]["Segments"]
            fields = {"opcode": opcode, "request": request} | second
            entries.append(self.card.book.layout["SendSegments"].pack(**fields))
        await ring.post(*entries)
        return request

    async def send(self, opcode="TaggedSend", *flags, **fields):
        """Posts to the send ring and returns the handle."""
        return await self._post(self.sends, opcode, flags, fields)

    async def gather(self, segments, *flags, second=None, **fields):
        """Posts a send of several segments, each an address, a length and a key, and returns the handle. `second` changes its second entry."""
        (address, length, key), *others = segments
        entry = {}
        for number, segment in enumerate(others, 1):
            entry |= zip((f"address{number}", f"length{number}", f"key{number}"), segment)
        first = {"address": address, "length": length, "key": key} | fields
        return await self._post(self.sends, "TaggedSend", ("FLAG_GATHER", *flags), first, entry | (second or {}))

    async def list(self, opcode="TaggedReceive", *flags, **fields):
        """Posts to the list ring and returns the handle."""
        return await self._post(self.lists, opcode, flags, fields)

    async def poll(self):
        """The next completion, if there is one, with the names of its status and kind."""
        completion = await self.completions.poll()
        if completion is None:
            return None
        book = self.card.book
        completion["status"] = book.name("Status", completion["status"])
        completion["kind"] = book.name("CompletionKind", completion["kind"])
        completion["more"] = bool(completion["flags"] & book.value["COMPLETION_MORE"])
        if not completion["more"]:
            self.outstanding.remove(completion["request"])
        return completion

    async def wait(self, request, limit=100_000):
        """The completion of this request."""

        async def found():
            while (completion := await self.poll()) is not None:
                self.kept.append(completion)
            return any(completion["request"] == request for completion in self.kept)

        await self.card._until(f"the completion of {request}", limit, found)
        completion = next(completion for completion in self.kept if completion["request"] == request)
        self.kept.remove(completion)
        return completion

    async def event(self):
        """The next event, if there is one, with the name of its cause."""
        event = await self.events.poll()
        if event is not None:
            event["cause"] = self.card.book.name("Cause", event["cause"])
        return event

    async def wait_event(self, limit=100_000):
        """The next event."""
        found = []

        async def come():
            if (event := await self.event()) is not None:
                found.append(event)
            return found

        await self.card._until("an event", limit, come)
        return found[0]

    async def close(self):
        """Closes the endpoint. What it had outstanding has completed then, or never will."""
        await self.card.command("CloseEndpoint", endpoint=self.id)


class Pair:
    """One end of a connection."""

    def __init__(self, endpoint):
        self.endpoint, self.card = endpoint, endpoint.card

    async def open(self, credits=None):
        """Opens the pair; returns what the other end has to be told."""
        value, card = self.card.book.value, self.card
        credits = value["DEFAULT_CREDITS"] if credits is None else credits
        slots = card.platform.allocate(credits * value["EAGER_MAX"], value["SLOTS_ALIGN"])
        answer = await card.command("OpenPair", endpoint=self.endpoint.id, credits=credits, slots=slots)
        self.id, self.sends = answer["pair"], answer["sends"]
        self.place = card.place(self.id)
        return {
            "remote_pair": self.place,
            "remote_endpoint": card.place(answer["endpoint"]),
            "remote_epoch": answer["epoch"],
            "remote_nonce": answer["nonce"],
            "remote_credits": answer["credits"],
            "remote_mac": card.identity["mac"],
            "remote_job": answer["job"],
        }

    async def connect(self, told):
        """Connects the pair to the end that has told this."""
        await self.card.command("ConnectPair", pair=self.id, **told)

    async def meet(self, command, credits=None, **arguments):
        """Opens the pair by `Accept` or `Connect`: the cards connect it, and an event says how that ended."""
        value, card = self.card.book.value, self.card
        credits = value["DEFAULT_CREDITS"] if credits is None else credits
        slots = card.platform.allocate(credits * value["EAGER_MAX"], value["SLOTS_ALIGN"])
        answer = await card.command(command, endpoint=self.endpoint.id, credits=credits, slots=slots, **arguments)
        self.id = answer["pair"]
        self.place = card.place(self.id)

    async def disconnect(self):
        """Ends the connection when all that was posted is acknowledged; `query` says when it has ended."""
        await self.card.command("Disconnect", pair=self.id, timeout=0)

    async def query(self):
        """The pair's state, by name, and its figures."""
        answer = await self.card.command("QueryPair", pair=self.id)
        return answer | {"state": self.card.book.name("PairState", answer["state"])}

    async def close(self):
        """Closes the pair."""
        await self.card.command("ClosePair", pair=self.id)


async def connect(one, other):
    """Opens a pair at both endpoints and connects them. Both are connected when it returns."""
    pairs = Pair(one), Pair(other)
    told = [await pair.open() for pair in pairs]
    for pair, peer in zip(pairs, reversed(told)):
        await pair.connect(peer)
    return pairs
