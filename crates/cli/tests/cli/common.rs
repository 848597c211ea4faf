//! Running the command, and writing the files it reads.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A directory that goes away with the test; the command runs in it.
pub(crate) struct Dir(tempfile::TempDir);

/// What a run printed.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Dir {
    pub(crate) fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Dir {
        std::fs::write(self.path(name), bytes).unwrap();
        self
    }

    /// A `.npy` file in C order. `data` are the bytes of the elements.
    pub(crate) fn npy(&self, name: &str, descr: &str, shape: &[usize], data: &[u8]) -> &Dir {
        self.file(name, npy(descr, shape, data))
    }

    pub(crate) fn f64s(&self, name: &str, shape: &[usize], values: &[f64]) -> &Dir {
        let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.npy(name, "<f8", shape, &data)
    }

    /// The names of the files, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        // Where only the binaries are, `WARPFOLD_BIN` says where this one is.
        let built = || env!("CARGO_BIN_EXE_warpfold").into();
        let mut command = Command::new(std::env::var_os("WARPFOLD_BIN").unwrap_or_else(built));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("WARPFOLD_CPU")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `warpfold` with the words of `line`.
    pub(crate) fn run(&self, line: &str) -> Run {
        Run::from(self.command(line).output().unwrap())
    }

    /// The same with `input` on stdin.
    pub(crate) fn pipe(&self, line: &str, input: impl AsRef<[u8]>) -> Run {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || {
            // The command may stop reading early.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Run::from(output)
    }

    /// What a run that succeeds prints.
    pub(crate) fn prints(&self, line: &str) -> String {
        self.run(line).success()
    }

    /// What a run complains about that fails with `status` and prints nothing.
    pub(crate) fn fails(&self, status: i32, line: &str) -> String {
        self.run(line).failure(status)
    }
}

impl Run {
    pub(crate) fn success(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        self.out
    }

    pub(crate) fn failure(self, status: i32) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self.err
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n},")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape})}}");
    let width = (10 + header.len() + 1).next_multiple_of(64) - 11;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((width as u16 + 1).to_le_bytes());
    bytes.extend(format!("{header:width$}\n").bytes());
    bytes.extend(data);
    bytes
}

/// Numbers in [-1, 1) that a test can make again.
pub(crate) fn noise(len: usize) -> Vec<f64> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| (next() as i64) as f64 / (1u64 << 63) as f64).collect()
}

/// An archive of stored members.
pub(crate) fn stored_zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let name = format!("{name}.npy");
        let offset = out.len() as u32;
        let size = bytes.len() as u32;
        let mut shared = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        shared.extend(crc32(bytes).to_le_bytes());
        shared.extend([size, size].iter().flat_map(|n| n.to_le_bytes()));
        shared.extend((name.len() as u16).to_le_bytes());
        shared.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&shared);
        out.extend(name.as_bytes());
        out.extend(bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&shared);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = (members.len() as u16).to_le_bytes();
    let start = (out.len() as u32).to_le_bytes();
    let length = (directory.len() as u32).to_le_bytes();
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([&count[..], &count, &length, &start, &[0, 0]].concat());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let table: Vec<u32> = (0..256).map(|b| (0..8).fold(b, |crc, _| step(crc))).collect();
    !bytes.iter().fold(!0, |crc: u32, &b| crc >> 8 ^ table[usize::from(crc as u8 ^ b)])
}
