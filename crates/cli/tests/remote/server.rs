//! A server of a few files in memory, which does what it is told, right or wrong.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a file is served.
#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fault: Fault,
    /// Requests that are answered as they should be before the fault.
    pub(crate) sound: usize,
}

/// What is wrong with answers.
#[derive(Clone, Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// A status with a body.
    Status(u16, &'static str),
    /// Half of the promised bytes, and the end of the connection.
    HalfWay,
    /// Half of the range that was asked for, and says so.
    HalfRange,
    /// The whole file, whatever is asked for.
    Whole,
    /// Another version of the file.
    Changed,
}

/// What was asked for.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) requests: Mutex<Vec<Request>>,
    in_flight: AtomicUsize,
    pub(crate) most_in_flight: AtomicUsize,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) range: Option<Range<usize>>,
    pub(crate) authorization: Option<String>,
}

pub(crate) struct Server {
    pub(crate) log: Arc<Log>,
    port: u16,
}

impl Server {
    /// Serves `files`, each after `delay`.
    pub(crate) fn start<const N: usize>(files: [(&str, File); N], delay: Duration) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Log::default());
        let files: HashMap<String, File> =
            files.into_iter().map(|(path, file)| (path.to_string(), file)).collect();
        let shared = Arc::new((files, Arc::clone(&log)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || talk(stream.unwrap(), &shared.0, &shared.1, delay));
            }
        });
        Server { log, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Bytes of answers to requests of ranges.
    pub(crate) fn bytes_asked(&self) -> usize {
        let requests = self.log.requests.lock().unwrap();
        requests.iter().filter_map(|r| r.range.clone()).map(|r| r.len()).sum()
    }
}

/// Answers the requests of one connection. What the other side does is no error here.
fn talk(mut stream: TcpStream, files: &HashMap<String, File>, log: &Log, delay: Duration) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader) {
        let now = log.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        log.most_in_flight.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(delay);
        let path = request.target.split('?').next().unwrap();
        let before = {
            let mut requests = log.requests.lock().unwrap();
            let before = requests.iter().filter(|r| r.target == request.target).count();
            requests.push(request.clone());
            before
        };
        let sent = match files.get(path) {
            None => status(&mut stream, 404, "<Error><Code>NoSuchKey</Code></Error>"),
            Some(file) => {
                let fault = if before < file.sound { &Fault::None } else { &file.fault };
                answer(&mut stream, &request, &file.bytes, fault)
            }
        };
        log.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !sent.unwrap_or(false) {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut request = Request { method, target, range: None, authorization: None };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim();
        if line.is_empty() {
            return Some(request);
        }
        let (name, value) = line.split_once(':')?;
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (from, to) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some(from.parse().ok()?..to.parse::<usize>().ok()? + 1);
            }
            "authorization" => request.authorization = Some(value.trim().into()),
            _ => {}
        }
    }
}

/// Whether the connection goes on.
fn answer(
    stream: &mut TcpStream,
    request: &Request,
    bytes: &[u8],
    fault: &Fault,
) -> std::io::Result<bool> {
    let tag = if matches!(fault, Fault::Changed) { "\"two\"" } else { "\"one\"" };
    let always = format!("ETag: {tag}\r\nLast-Modified: Wed, 25 Nov 2026 10:00:00 GMT\r\n");
    let range = request.range.clone().filter(|_| !matches!(fault, Fault::Whole));
    if let Fault::Status(code, body) = fault {
        return status(stream, *code, body);
    }
    if request.method == "HEAD" {
        write!(stream, "HTTP/1.1 200 OK\r\n{always}Content-Length: {}\r\n\r\n", bytes.len())?;
        return Ok(true);
    }
    let Some(range) = range else {
        write!(stream, "HTTP/1.1 200 OK\r\n{always}Content-Length: {}\r\n\r\n", bytes.len())?;
        stream.write_all(bytes)?;
        return Ok(true);
    };
    if range.start >= bytes.len() {
        return status(stream, 416, "");
    }
    let mut end = range.end.min(bytes.len());
    if matches!(fault, Fault::HalfRange) {
        end = range.start + (end - range.start) / 2;
    }
    let part = &bytes[range.start..end];
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\n{always}Content-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
        part.len(),
        range.start,
        end - 1,
        bytes.len(),
    )?;
    if matches!(fault, Fault::HalfWay) {
        stream.write_all(&part[..part.len() / 2])?;
        return Ok(false);
    }
    stream.write_all(part)?;
    Ok(true)
}

fn status(stream: &mut TcpStream, code: u16, body: &str) -> std::io::Result<bool> {
    write!(stream, "HTTP/1.1 {code} Told\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    Ok(true)
}
