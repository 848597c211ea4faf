//! Files on servers, read by ranges: `https://`, `s3://`, `gs://` and `az://`.
//!
//! A server is asked for a part of a file at a time. What is read front to back is asked for
//! ahead, several ranges in flight (`ranges`), since an answer is some way off. Credentials
//! and endpoints come from the environment, under the names that each provider's tools use.

mod failure;
mod ranges;

pub(crate) use failure::Failure;

use crate::{Error, Result, address};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, GetOptions, GetRange, GetResult};
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig};
use ranges::Ranges;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A file on a server.
pub(crate) struct Remote {
    len: u64,
    ranges: Ranges,
}

impl Remote {
    /// Asks the server for the length and the first bytes. The name comes back without the
    /// query, which may hold a signature.
    ///
    /// # Errors
    /// What the server or the way to it says.
    pub(crate) fn open(url: &OsStr) -> Result<(String, Remote)> {
        let url = Url::of(url).map_err(|what| Error::format(url.display().to_string(), what))?;
        let name = url.shown();
        let opened = url.object().and_then(|object| {
            let (tell, told) = channel();
            // Nobody else waits for it.
            spawn(async move { drop(tell.send(object.open().await)) })?;
            told.recv().unwrap_or_else(|e| Err(Failure::of(&e)))
        });
        let (object, head) = opened
            .map_err(|failure| Error::Io { path: name.clone().into(), source: failure.io() })?;
        let len = object.len;
        Ok((name, Remote { len, ranges: Ranges::new(Arc::new(object), len, head) }))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads some bytes from `offset` on; none at the end.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) fn read_some_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.ranges.read_some_at(out, offset).map_err(Failure::io)
    }
}

/// What asks servers, in the background.
///
/// # Errors
/// The system gives no threads for it.
fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let make = || Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = RUNTIME.get_or_init(make).as_ref().map_err(|e| Failure::of(e))?;
    runtime.spawn(work);
    Ok(())
}

/// Threads that receive: what is encrypted takes them a second for a gigabyte or two.
const THREADS: usize = 4;

/// The parts of an address.
struct Url<'a> {
    scheme: &'static str,
    authority: &'a str,
    path: &'a str,
    /// With its question mark.
    query: &'a str,
}

impl<'a> Url<'a> {
    fn of(url: &'a OsStr) -> Result<Self, &'static str> {
        let scheme = address::scheme(url).ok_or("this is no address")?;
        let rest = url.to_str().ok_or("an address is text")?;
        let rest = &rest[scheme.len() + "://".len()..];
        // Keys of objects may hold what begins a query elsewhere.
        let (rest, query) = match rest.find(['?', '#']) {
            Some(at) if scheme.starts_with("http") => rest.split_at(at),
            _ => (rest, ""),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() || path.is_empty() {
            return Err("the address names no file, as https://HOST/FILE and s3://BUCKET/KEY do");
        }
        Ok(Url { scheme, authority, path, query })
    }

    fn shown(&self) -> String {
        // A password goes before the host.
        let host = self.authority.rsplit_once('@').filter(|_| self.scheme.starts_with("http"));
        let host = host.map_or(self.authority, |(_, host)| host);
        format!("{}://{host}/{}", self.scheme, self.path)
    }

    /// The file, and what asks the server for it.
    fn object(&self) -> Result<Object, Failure> {
        let &Url { scheme, authority, path, query } = self;
        let wrong = |e| Failure::of_store(scheme, e);
        let retry = RetryConfig {
            backoff: BackoffConfig {
                max_backoff: Duration::from_secs(4),
                ..BackoffConfig::default()
            },
            max_retries: 4,
            retry_timeout: Duration::from_secs(60),
        };
        let base = format!("{scheme}://{authority}/");
        let store: Result<Arc<dyn ObjectStore>, _> = match scheme {
            "s3" | "s3a" => AmazonS3Builder::from_env()
                .with_url(base)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            "gs" => GoogleCloudStorageBuilder::from_env()
                .with_url(base)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            "http" | "https" => HttpBuilder::new()
                .with_url(format!("{base}{query}"))
                .with_client_options(ClientOptions::new().with_allow_http(scheme == "http"))
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            _ => MicrosoftAzureBuilder::from_env()
                .with_url(base)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
        };
        let web = scheme.starts_with("http");
        let path = if web { Path::from_url_path(path) } else { Path::parse(path) };
        let path = path.map_err(|e| wrong(e.into()))?;
        Ok(Object { scheme, store: store.map_err(wrong)?, path, len: 0, tag: None })
    }
}

/// A file, and what asks the server for it.
struct Object {
    scheme: &'static str,
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Its length when it was opened.
    len: u64,
    /// What the server told then, to know whether it changes.
    tag: Option<String>,
}

/// Bytes that are asked for when a file is opened: enough for its header.
const HEAD: u64 = crate::open::HEAD as u64;

impl Object {
    /// Asks for the length and the first bytes, in one request where the file has any.
    async fn open(mut self) -> Result<(Self, Vec<u8>), Failure> {
        let first = GetRange::Bounded(0..HEAD);
        let got = match self
            .store
            .get_opts(&self.path, GetOptions::new().with_range(Some(first)))
            .await
        {
            Ok(got) => got,
            // An empty file has no first byte.
            Err(error) => {
                return match self.store.head(&self.path).await {
                    Ok(meta) if meta.size == 0 => Ok((self, Vec::new())),
                    _ => Err(Failure::of_store(self.scheme, error)),
                };
            }
        };
        (self.len, self.tag) = (got.meta.size, got.meta.e_tag.clone());
        let bytes = self.bytes(got, 0..HEAD.min(self.len)).await?;
        Ok((self, bytes))
    }

    /// The bytes of a range.
    async fn get(&self, range: Range<u64>) -> Result<Vec<u8>, Failure> {
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(range.clone())));
        let got = self.store.get_opts(&self.path, options).await;
        let got = got.map_err(|e| Failure::of_store(self.scheme, e))?;
        if got.meta.size != self.len || got.meta.e_tag != self.tag {
            return Err(Failure::of(&"the file on the server has changed while it was read"));
        }
        self.bytes(got, range).await
    }

    async fn bytes(&self, got: GetResult, range: Range<u64>) -> Result<Vec<u8>, Failure> {
        let bytes = got.bytes().await.map_err(|e| Failure::broken(&range, e))?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(Failure::truncated(&range, bytes.len()));
        }
        Ok(bytes.into())
    }
}
