//! What the memories have in common: how many words they get and how they are written in Verilog.

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
}

impl Text {
    /// `depth`: as [`capacity`] gave it.
    pub(super) fn new(width: usize, depth: usize) -> Self {
        Text { width, depth }
    }

    /// The bits of the port `address` that select a word.
    pub(super) fn select(&self, address: &str) -> String {
        format!("{address}[{}:0]", self.depth.ilog2() - 1)
    }

    /// The body of the module; `write` are the statements that write at the clock's edge.
    pub(super) fn print(&self, write: &str) -> String {
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
            "logic [{msb}:0] words [0:{last}];\n\
             integer word;\n\
             initial for (word = 0; word <= {last}; word = word + 1) words[word] = '0;\n\
             always @(posedge clock) begin\n  \
               read_data <= words[{read}];\n\
             {write}\
             end\n{unused}",
            msb = self.width - 1,
            last = self.depth - 1,
            read = self.select("read_address"),
        )
    }
}
