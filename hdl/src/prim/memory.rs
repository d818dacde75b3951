//! What the memories have in common: how many words they get and how they are written in Verilog.

/// A contract that the printed text of a memory breaks while its Rust model keeps it, so that a test
/// can show that the two are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mutation {
    /// As designed.
    #[default]
    None,
    /// A word that is read while it is written is the new one.
    ReadsNewWord,
    /// A whole word is written if any byte of it is.
    WritesWholeWord,
    /// The top bit of an address is ignored.
    HalfTheWords,
}

/// Words of a memory that needs `depth`: a power of two, so that an address can't be out of range.
///
/// # Panics
/// If `depth` is below 2 or above 65536, which 16 address bits reach.
pub(super) fn capacity(depth: usize) -> usize {
    assert!(
        (2..=1 << 16).contains(&depth),
        "a memory has 2 to 65536 words, not {depth}"
    );
    depth.next_power_of_two()
}

/// Verilog of a memory with a synchronous read port `read_address`, `read_data`.
pub(super) struct Text {
    width: usize,
    depth: usize,
    mutation: Mutation,
    /// No word is read that is being written.
    promised: bool,
    style: Style,
}

/// Words of the distributed memory of an ECP5's slice, which are 4 bits wide. A larger memory reads several and chooses one.
pub(super) const SLICE_WORDS: usize = 16;

/// Words of a memory that is made of look-up tables unless a word has more than [`SMALL_BITS`]: in a block RAM, of which a card has too few, it
/// would leave three quarters empty. Of a smaller one synthesis makes look-up tables by itself.
const SMALL_WORDS: usize = 128;
/// See [`SMALL_WORDS`]. Each bit takes some 12 look-up tables, and 4 to choose a word.
const SMALL_BITS: usize = 32;

/// What a memory is to be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Look-up tables if it has [`SMALL_WORDS`] of few bits, otherwise what synthesis thinks best for its size.
    Any,
    /// Block RAM, however small it is.
    Block,
    /// Look-up tables, however large it is.
    Distributed,
}

impl Text {
    /// `depth`: as [`capacity`] gave it.
    pub(super) fn new(width: usize, depth: usize, mutation: Mutation) -> Self {
        Text {
            width,
            depth,
            mutation,
            promised: false,
            style: Style::Any,
        }
    }

    /// The same, of a memory no word of which is read while it is written.
    pub(super) fn promised(self) -> Self {
        Text {
            promised: true,
            ..self
        }
    }

    /// The same, made of `style`.
    pub(super) fn made_of(self, style: Style) -> Self {
        Text { style, ..self }
    }

    /// The bits of the port `address` that select a word.
    pub(super) fn select(&self, address: &str) -> String {
        let bits = self.depth.ilog2();
        let selected = format!("{address}[{}:0]", bits - 1);
        match self.mutation {
            Mutation::HalfTheWords => format!("{selected} & {bits}'d{}", self.depth / 2 - 1),
            _ => selected,
        }
    }

    /// The body of the module; `write` are the statements that write at the clock's edge.
    pub(super) fn print(&self, write: &str) -> String {
        let forward = match self.mutation {
            Mutation::ReadsNewWord => format!(
                "  if (|write_enable && {} == {}) read_data <= write_data;\n",
                self.select("write_address"),
                self.select("read_address")
            ),
            _ => String::new(),
        };
        let (attribute, broken) = match self.promised {
            true => (
                "(* no_rw_check *) ",
                format!(
                    "`ifndef SYNTHESIS\n  if (|write_enable && ({}) == ({read})) read_data <= ~words[{read}];\n`endif\n",
                    self.select("write_address"),
                    read = self.select("read_address"),
                ),
            ),
            false => ("", String::new()),
        };
        let is_small = self.depth == SMALL_WORDS && self.width <= SMALL_BITS;
        let style = match self.style {
            Style::Any if is_small => "(* ram_style = \"distributed\" *) ",
            Style::Any => "",
            Style::Block => "(* ram_style = \"block\" *) ",
            Style::Distributed => "(* ram_style = \"distributed\" *) ",
        };
        let unused = |address: &str| match self.depth.ilog2() {
            16 => String::new(),
            bits => format!("&{{1'b1, {address}[15:{bits}]}}"),
        };
        let unused: Vec<String> = ["read_address", "write_address"]
            .iter()
            .map(|a| unused(a))
            .filter(|text| !text.is_empty())
            .collect();
        let unused = match unused.is_empty() {
            true => String::new(),
            false => format!("wire unused = {};\n", unused.join(" & ")),
        };
        format!(
            "{attribute}{style}logic [{msb}:0] words [0:{last}];\n\
             integer word;\n\
             initial for (word = 0; word <= {last}; word = word + 1) words[word] = '0;\n\
             always @(posedge clock) begin\n  \
               read_data <= words[{read}];\n\
             {write}{forward}{broken}\
             end\n{unused}",
            msb = self.width - 1,
            last = self.depth - 1,
            read = self.select("read_address"),
        )
    }
}
