//! A reader that works on its own thread, ahead of its consumer.

use crate::guard;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes handed over at a time, and how many such pieces wait at most.
const PIECE: usize = 256 << 10;
const WAITING: usize = 4;

pub(super) struct ReadAhead {
    source: Source,
    /// The piece in hand, and how much of it has been read.
    piece: Vec<u8>,
    taken: usize,
}

enum Source {
    Thread(Receiver<io::Result<Vec<u8>>>),
    /// Where no thread can be started.
    Here(Arc<Mutex<Decoder>>),
    Ended,
}

/// A decoder whose panics and complaints are errors about the data.
struct Decoder {
    codec: &'static str,
    name: String,
    inner: Box<dyn Read + Send>,
}

impl Decoder {
    /// The next piece; empty at the end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; PIECE];
        let mut filled = 0;
        while filled < PIECE {
            let read = || Ok(self.inner.read(&mut piece[filled..]));
            match guard::quietly(&self.name, read) {
                Ok(Ok(0)) => break,
                Ok(Ok(n)) => filled += n,
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(e)) => return Err(self.blamed(e)),
                Err(_) => return Err(self.broken("the decoder failed")),
            }
        }
        piece.truncate(filled);
        Ok(piece)
    }

    /// Errors of the system are left as they are; all others are about the
    /// data, whatever kind the decoder takes for them.
    fn blamed(&self, error: io::Error) -> io::Error {
        match (error.raw_os_error(), error.kind()) {
            (Some(_), _) => error,
            (_, io::ErrorKind::UnexpectedEof) => self.broken("the end is missing"),
            _ => match error.to_string().as_str() {
                // So zstd calls other bytes behind its data; in front of them there are none.
                "Unknown frame descriptor" => self.broken("other bytes follow the end of the data"),
                what => self.broken(what),
            },
        }
    }

    fn broken(&self, what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", self.codec))
    }
}

impl ReadAhead {
    /// `name` is for messages.
    pub(super) fn new(codec: &'static str, name: &str, inner: Box<dyn Read + Send>) -> Self {
        let (sender, receiver) = sync_channel(WAITING);
        let decoder = Arc::new(Mutex::new(Decoder { codec, name: name.into(), inner }));
        let theirs = Arc::clone(&decoder);
        let work = move || run(&mut lock(&theirs), &sender);
        let thread = std::thread::Builder::new().name("unpack".into());
        let thread = warpfold_threads::has_room(1).then(|| thread.spawn(work));
        let source = match thread {
            Some(Ok(_)) => Source::Thread(receiver),
            _ => Source::Here(decoder),
        };
        ReadAhead { source, piece: Vec::new(), taken: 0 }
    }

    fn next(&mut self) -> io::Result<Vec<u8>> {
        let next = match &mut self.source {
            // The thread ends with an empty piece or an error; without one it
            // has died.
            Source::Thread(receiver) => receiver.recv().unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the decoder failed"))
            }),
            Source::Here(decoder) => lock(decoder).next(),
            Source::Ended => return Ok(Vec::new()),
        };
        if next.as_ref().map_or(true, Vec::is_empty) {
            self.source = Source::Ended;
        }
        next
    }
}

fn lock(decoder: &Mutex<Decoder>) -> MutexGuard<'_, Decoder> {
    decoder.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(decoder: &mut Decoder, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let piece = decoder.next();
        let last = piece.as_ref().map_or(true, Vec::is_empty);
        // The consumer may have stopped.
        if sender.send(piece).is_err() || last {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            self.piece = self.next()?;
            self.taken = 0;
        }
        let n = out.len().min(self.piece.len() - self.taken);
        out[..n].copy_from_slice(&self.piece[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes, then whatever `last` makes.
    struct Script<F: FnMut() -> io::Result<usize>>(usize, F);

    impl<F: FnMut() -> io::Result<usize>> Read for Script<F> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return (self.1)();
            }
            let n = out.len().min(self.0).min(1000);
            out[..n].fill(7);
            self.0 -= n;
            Ok(n)
        }
    }

    fn read(last: impl FnMut() -> io::Result<usize> + Send + 'static) -> (usize, io::Result<()>) {
        let script = Script(PIECE * 3 + 17, last);
        let mut reader = ReadAhead::new("test", "t", Box::new(script));
        let (mut n, mut buffer) = (0, vec![0; 5000]);
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return (n, Ok(())),
                Ok(more) => n += more,
                Err(e) => return (n, Err(e)),
            }
        }
    }

    #[test]
    fn ends_errors_and_panics_come_through() {
        crate::hide_guarded_panics();
        assert!(matches!(read(|| Ok(0)), (n, Ok(())) if n == PIECE * 3 + 17));
        let (_, result) = read(|| Err(io::Error::other("odd")));
        let error = result.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "test: odd");
        let (_, result) = read(|| panic!("index out of bounds"));
        assert_eq!(result.unwrap_err().to_string(), "test: the decoder failed");
        let (_, result) = read(|| Err(io::Error::from_raw_os_error(5)));
        assert_eq!(result.unwrap_err().raw_os_error(), Some(5));
    }

    #[test]
    fn a_reader_that_is_dropped_early_leaves_no_thread_behind() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let script = Script(usize::MAX, move || {
            let _ = &sender;
            Ok(0)
        });
        let mut reader = ReadAhead::new("test", "t", Box::new(script));
        reader.read_exact(&mut [0; 10]).unwrap();
        drop(reader);
        // The sender goes away with the thread.
        assert!(receiver.recv_timeout(std::time::Duration::from_secs(60)).is_err());
    }
}
