//! A small ELF file with a segment, a build id and `defmt` tables, for tests.

use abi::mgmt::MEMORY_BASE;

/// A format string in the tables.
pub struct LogMessage {
    level: &'static str,
    format: &'static str,
}

impl LogMessage {
    /// A message of level `info`.
    pub const fn info(format: &'static str) -> Self {
        Self {
            level: "info",
            format,
        }
    }

    /// A message of level `warn`.
    pub const fn warn(format: &'static str) -> Self {
        Self {
            level: "warn",
            format,
        }
    }
}

/// What is in the file.
pub struct Elf {
    /// Processor: `EM_RISCV`.
    pub machine: u16,
    /// Where the segment goes.
    pub address: u32,
    /// The segment.
    pub image: Vec<u8>,
    /// Build id, if there is one.
    pub build_id: Option<u64>,
    /// Their indices are 1, 2, ….
    pub messages: Vec<LogMessage>,
}

impl Default for Elf {
    fn default() -> Self {
        Self {
            machine: object::elf::EM_RISCV,
            address: MEMORY_BASE + 0x80,
            image: vec![1, 2, 3, 4, 5],
            build_id: Some(0x0123_4567_89ab_cdef),
            messages: Vec::new(),
        }
    }
}

const HEADER: usize = 52;
const PROGRAM_HEADER: usize = 32;

fn words(out: &mut Vec<u8>, words: &[u32]) {
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn name(strings: &mut Vec<u8>, name: &str) -> u32 {
    let at = strings.len() as u32;
    strings.extend(name.bytes());
    strings.push(0);
    at
}

impl Elf {
    /// The bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        use object::elf;
        let mut strings = vec![0];
        let mut body = self.image.clone();
        // Name, type, contents, link, size of an entry.
        let mut sections: Vec<(&str, u32, Vec<u8>, u32, u32)> = Vec::new();
        if let Some(id) = self.build_id {
            let id = id.to_le_bytes().to_vec();
            sections.push((".posthorn_build_id", elf::SHT_PROGBITS, id, 0, 0));
        }
        if !self.messages.is_empty() {
            sections.push((".defmt", elf::SHT_PROGBITS, vec![0; 16], 0, 0));
            let defmt = sections.len() as u32;
            let mut symbols = vec![0; 16];
            let mut symbol = |text: &str, value: u32, section: u32| {
                let at = name(&mut strings, text);
                words(&mut symbols, &[at, value, 1, 0x10 | section << 16]);
            };
            let absolute = u32::from(elf::SHN_ABS);
            symbol("_defmt_version_ = 4", 0, absolute);
            symbol("_defmt_encoding_ = rzcobs", 0, absolute);
            for (index, message) in self.messages.iter().enumerate() {
                let text = format!(
                    r#"{{"package":"test","tag":"defmt_{}","data":"{}","disambiguator":"{index}"}}"#,
                    message.level, message.format
                );
                symbol(&text, index as u32 + 1, defmt);
            }
            let strtab = sections.len() as u32 + 2;
            sections.push((".symtab", elf::SHT_SYMTAB, symbols, strtab, 16));
        }
        let names: Vec<u32> = sections.iter().map(|s| name(&mut strings, s.0)).collect();
        let own = name(&mut strings, ".strtab");
        sections.push((".strtab", elf::SHT_STRTAB, strings, 0, 0));

        let start = HEADER + PROGRAM_HEADER;
        let mut table = vec![0; 40];
        for ((_, kind, contents, link, entry), name) in
            sections.iter().zip(names.into_iter().chain([own]))
        {
            body.resize(body.len().next_multiple_of(4), 0);
            let (at, len) = ((start + body.len()) as u32, contents.len() as u32);
            words(
                &mut table,
                &[name, *kind, 0, 0, at, len, *link, 1, 1, *entry],
            );
            body.extend(contents);
        }
        body.resize(body.len().next_multiple_of(4), 0);

        let mut out = vec![0x7f, b'E', b'L', b'F', 1, 1, 1];
        out.resize(16, 0);
        words(
            &mut out,
            &[2 | u32::from(self.machine) << 16, 1, self.address],
        );
        words(&mut out, &[HEADER as u32, (start + body.len()) as u32, 0]);
        let count = sections.len() as u32 + 1;
        // Sizes and counts of the headers, and which section has the names.
        words(&mut out, &[HEADER as u32 | (PROGRAM_HEADER as u32) << 16]);
        words(&mut out, &[1 | 40 << 16, count | (count - 1) << 16]);
        let (address, len) = (self.address, self.image.len() as u32);
        words(
            &mut out,
            &[1, start as u32, address, address, len, len, 5, 4],
        );
        assert_eq!(out.len(), start);
        out.extend(body);
        out.extend(table);
        out
    }
}
