"""The tables of the book's generated pages, so that the driver knows what the book says and nothing else.

    | `NAME` | value | …      constants        | 0x0a | `Name` | …       codes, some with words
    | word | bits | `field` | fields           | 0x100 | `NAME` | access  registers
    | word | number | `argument` |             | word | `result` |        words of commands
"""

import pathlib
import re

PAGES = "registers requests completions statuses commands pair-commands command-codes".split()


class Layout:
    """A packed structure of 64-bit little-endian words."""

    def __init__(self, fields, size):
        self.fields, self.size = fields, size

    def pack(self, **values):
        whole = 0
        for name, value in values.items():
            low, width = self.fields[name]
            assert 0 <= value < 1 << width, f"{name} has {width} bits, and {value:#x} has more"
            whole |= value << low
        return whole.to_bytes(self.size, "little")

    def unpack(self, data, first=0):
        """The fields that `data` has, which begins at byte `first` of the structure."""
        whole = int.from_bytes(data, "little") << 8 * first
        fields = {name: place for name, place in self.fields.items() if place[0] >= 8 * first}
        return {name: whole >> low & (1 << width) - 1 for name, (low, width) in fields.items()}


class Book:
    """What the pages in `folder` say.

    `value["MAGIC"]` is a constant or the offset of a register, `code["Status"]["Success"]` a code, `layout["Completion"]` a structure,
    `words["CompletionKind"][1]` the words that are written of a completion of the kind with code 1, and
    `command["OpenPair"]` the code, the arguments and the results of a command, each result or argument with its words.
    """

    def __init__(self, folder):
        self.value, self.code, self.words, self.layout, self.command = {}, {}, {}, {}, {}
        for page in PAGES:
            self._read(pathlib.Path(folder, f"{page}.md").read_text(encoding="utf-8"))

    def name(self, codes, number):
        """The name of a code."""
        return next((name for name, code in self.code[codes].items() if code == number), f"{codes} {number:#x}")

    def _read(self, text):
        section, header, rows = "", None, []
        for line in [*text.splitlines(), ""]:
            if line.startswith("#"):
                section = line.lstrip("# ")
            if line.startswith("|"):
                row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                if header is None:
                    header = row
                elif not row[0].startswith("---"):
                    rows.append(row)
            elif header is not None:
                self._table(section, header, rows)
                header, rows = None, []
            elif found := re.match(r"Code (\d+)\.", line):
                self.command[section] = (int(found[1]), {}, {})

    def _table(self, section, header, rows):
        plain = [[cell.strip("`") for cell in row] for row in rows]
        match header:
            case ["name", "value", *_]:
                self.value |= {name: int(value) for name, value, *_ in plain}
            case ["offset", "name", *_]:
                self.value |= {name: int(offset, 16) for offset, name, *_ in plain}
            case ["code", "name", "words", *_]:
                self.code[section] = {name: int(code, 16) for code, name, *_ in plain}
                self.words[section] = {int(code, 16): int(words) for code, _, words, *_ in plain}
            case ["code", "name", *_]:
                self.code[section] = {name: int(code, 16) for code, name, *_ in plain}
            case ["word", "bits", "field", *_]:
                fields, end = {}, 0
                for word, bits, field, *_ in plain:
                    high, _, low = bits.partition(":")
                    low = int(low or high)
                    end = 64 * (int(word) + 1)
                    if field != "reserved":
                        fields[field] = (64 * int(word) + low, int(high) - low + 1)
                self.layout[section] = Layout(fields, end // 8)
            case ["word", "number", "argument", *_]:
                self.command[section][1].update({name: _words(words) for words, _, name, *_ in plain})
            case ["word", "result", *_]:
                # An answer that several commands have is a section of its own, without a code.
                self.command.setdefault(section, (None, {}, {}))[2].update({name: _words(words) for words, name, *_ in plain})


def _words(cell):
    return [int(word) for word in cell.split(",")]
