//! What rust-hdl's simulation says of the kernels, kept between runs.
//!
//! Simulating them takes half a minute, and its outcome changes only with the kernels themselves,
//! the blocks of `hdl` that they use, and rust-hdl, which is pinned. So it is kept in a file under
//! the hash of these sources, which `build/main.rs` takes.

use crate::kernel::{Case, Vector};
use num_bigint::BigUint;
use std::io::{Read, Write};
use std::path::Path;

/// rust-hdl keeps wide values on the stack, unoptimised ones many times over.
const STACK: usize = 1 << 28;

/// Each case with its vectors: from the file in `folder` if there is one, else simulated on two
/// threads.
pub fn of(cases: Vec<Case>, folder: &Path) -> Vec<(Case, Vec<Vector>)> {
    let file = folder.join(format!("vectors-{}", env!("KERNELS_HASH")));
    if let Ok(bytes) = std::fs::read(&file) {
        let mut bytes = bytes.as_slice();
        let all = cases.into_iter().map(|case| {
            let vectors = read(&mut bytes).expect("the file was renamed when it was complete");
            (case, vectors)
        });
        return all.collect();
    }
    let all = simulate(cases);
    let mut bytes = vec![];
    for (_, vectors) in &all {
        write(&mut bytes, vectors).expect("a Vec takes every write");
    }
    let scratch = file.with_extension(std::process::id().to_string());
    std::fs::write(&scratch, bytes).expect("the target folder can be written");
    std::fs::rename(&scratch, &file).expect("it was made just now");
    all
}

fn simulate(mut cases: Vec<Case>) -> Vec<(Case, Vec<Vector>)> {
    let rest = cases.split_off(cases.len() / 2);
    let threads = [cases, rest].map(|cases| {
        let run = move || {
            let cases = cases.into_iter();
            cases
                .map(|case| {
                    let vectors = case.simulate();
                    (case, vectors)
                })
                .collect::<Vec<_>>()
        };
        let builder = std::thread::Builder::new().stack_size(STACK);
        builder.spawn(run).expect("threads can be made")
    });
    let halves = threads
        .into_iter()
        .map(|t| t.join().expect("kernels settle"));
    halves.flatten().collect()
}

fn write(to: &mut impl Write, vectors: &[Vector]) -> std::io::Result<()> {
    to.write_all(&(vectors.len() as u32).to_le_bytes())?;
    for vector in vectors {
        for value in [&vector.input, &vector.output] {
            let bytes = value.to_bytes_le();
            to.write_all(&(bytes.len() as u16).to_le_bytes())?;
            to.write_all(&bytes)?;
        }
    }
    Ok(())
}

fn read(from: &mut impl Read) -> std::io::Result<Vec<Vector>> {
    let mut count = [0; 4];
    from.read_exact(&mut count)?;
    let mut value = || -> std::io::Result<BigUint> {
        let mut length = [0; 2];
        from.read_exact(&mut length)?;
        let mut bytes = vec![0; u16::from_le_bytes(length).into()];
        from.read_exact(&mut bytes)?;
        Ok(BigUint::from_bytes_le(&bytes))
    };
    (0..u32::from_le_bytes(count))
        .map(|_| {
            let (input, output) = (value()?, value()?);
            Ok(Vector { input, output })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_as_they_were_written() {
        let vectors: Vec<Vector> = (0..300u32)
            .map(|i| Vector {
                input: BigUint::from(i) << (7 * i),
                output: BigUint::from(i / 2),
            })
            .collect();
        let mut bytes = vec![];
        write(&mut bytes, &vectors).unwrap();
        assert_eq!(read(&mut bytes.as_slice()).unwrap(), vectors);
        assert!(read(&mut &bytes[..bytes.len() - 1]).is_err());
    }
}
