//! A socket's chunks: bytes that end anywhere, within an element, too.
//!
//! `cargo run -p warpfold --example socket`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use warpfold::{Accumulator, Op};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<f64> = (0..10_000).map(|i| f64::from(i) * 0.1).collect();
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;

    // A sender in the machine's byte order, whose writes mind no elements.
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let sender = thread::spawn(move || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        bytes.chunks(1021).try_for_each(|chunk| stream.write_all(chunk))
    });

    let mut received = Accumulator::<f64>::new([Op::Sum, Op::Mean, Op::ArgMax])?;
    let (mut stream, _) = listener.accept()?;
    let mut chunk = [0; 1500];
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            n => received.absorb_bytes(&chunk[..n])?,
        }
    }
    sender.join().map_err(|_| "the sender failed")??;

    // Had the last element not arrived as a whole, this would be an error.
    let answer = received.finish()?;
    println!("{answer}");
    assert_eq!(answer.number(Op::Sum), Some(warpfold::sum(&numbers)));
    assert_eq!(answer.number::<u64>(Op::ArgMax), Some(9_999));
    Ok(())
}
