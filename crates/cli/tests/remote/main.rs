//! The command on files of a server, which runs in the test.

mod server;

use server::{Fault, File, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs the command with these words, and variables for a server of objects at `endpoint`.
fn run(words: &[&str], endpoint: &str, folder: &Path) -> Output {
    let account = folder.join("account.json");
    let told = format!(
        r#"{{"gcs_base_url": "{endpoint}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#
    );
    std::fs::write(&account, told).unwrap();
    Command::new(env!("CARGO_BIN_EXE_warpfold"))
        .args(words)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("NO_PROXY", "127.0.0.1")
        .env("AWS_ENDPOINT", endpoint)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "someone")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("GOOGLE_SERVICE_ACCOUNT", &account)
        .env("AZURE_STORAGE_USE_EMULATOR", "true")
        .env("AZURITE_BLOB_STORAGE_URL", endpoint)
        .output()
        .unwrap()
}

/// What a run printed that went well.
fn answer(words: &[&str], endpoint: &str, folder: &Path) -> String {
    let Output { status, stdout, stderr } = run(words, endpoint, folder);
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{words:?}: {stderr}");
    String::from_utf8(stdout).unwrap()
}

/// What a run says that went wrong, on stderr alone.
fn complaint(words: &[&str], endpoint: &str, folder: &Path) -> String {
    let Output { status, stdout, stderr } = run(words, endpoint, folder);
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{words:?}: {stderr}");
    assert_eq!(String::from_utf8(stdout).unwrap(), "", "{words:?}");
    stderr
}

fn sound(bytes: Vec<u8>) -> File {
    File { bytes, ..File::default() }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

/// A `.npy` file of as many numbers, whose sums need all of them.
fn npy(len: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({len},), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\0\x76\0".to_vec();
    bytes.extend(header.bytes());
    bytes.extend((0..len).flat_map(|i| (1.0 / (i as f64 + 1.0)).to_le_bytes()));
    bytes
}

/// Files of all formats with the questions about them, `{}` for the file.
const QUESTIONS: [&str; 10] = [
    "sum {elnino.npy}",
    "mean --axis 0 {elnino.npy}",
    "argmax --axis 1 {elnino.npy}",
    "stats {co2.csv}",
    "sum -c co2 {co2.csv.gz}",
    "mean {t.parquet}:sum",
    "stats {t.parquet}",
    "max {t.arrow}:sum",
    "sum {t.npz}:sum",
    "sum --dtype f64 --offset 128 {elnino.npy} --format raw",
];

#[test]
fn files_of_servers_are_read_as_those_of_disks() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::copy(example("elnino.npy"), here.join("elnino.npy")).unwrap();
    std::fs::copy(example("co2.csv"), here.join("co2.csv")).unwrap();
    let zipped = Command::new("gzip").arg("-kn").arg(here.join("co2.csv")).status().unwrap();
    assert!(zipped.success());
    let columns: String = (0..50_000).map(|i| format!("{i},{}\n", f64::from(i) / 3.0)).collect();
    std::fs::write(here.join("t.csv"), format!("a,b\n{columns}")).unwrap();
    for to in ["t.parquet", "t.arrow", "t.npz"] {
        let words = ["sum", "--by", "b", "-c", "a", "t.csv", "-o", to];
        answer(&words, "", here);
    }
    let names = ["elnino.npy", "co2.csv", "co2.csv.gz", "t.parquet", "t.arrow", "t.npz"];
    let paths = names.map(|name| format!("/folder/{name}"));
    let of = |i: usize| (paths[i].as_str(), sound(std::fs::read(here.join(names[i])).unwrap()));
    let server = Server::start([of(0), of(1), of(2), of(3), of(4), of(5)], Duration::ZERO);
    for question in QUESTIONS {
        let at = |base: &str| question.replace('{', base).replace('}', "");
        let words = |base: &str| at(base).split(' ').map(String::from).collect::<Vec<_>>();
        let ask = |words: Vec<String>| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            answer(&words, &server.url(), here)
        };
        let expected = ask(words(""));
        assert!(!expected.is_empty());
        assert_eq!(ask(words(&format!("{}/folder/", server.url()))), expected, "{question}");
    }
    // What a query says is the server's affair, and may be secret.
    let signed = format!("{}/folder/elnino.npy?signature=a*b", server.url());
    let told = answer(&["inspect", &signed], "", here);
    assert!(told.contains("elnino.npy\tnpy\tf64") && !told.contains("signature"), "{told}");
    assert!(
        server.log.requests.lock().unwrap().iter().any(|r| r.target.ends_with("?signature=a*b"))
    );
}

#[test]
fn objects_of_each_provider_are_asked_for_by_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(example("elnino.npy")).unwrap();
    let paths =
        ["/bucket/a%20b/x.npy", "/bucket/a%20b%2Fx%2Enpy", "/devstoreaccount1/bucket/a%20b/x.npy"];
    let server = Server::start(paths.map(|path| (path, sound(bytes.clone()))), Duration::ZERO);
    let expected = answer(&["sum", example("elnino.npy").to_str().unwrap()], "", folder.path());
    for scheme in ["s3", "gs", "az"] {
        let url = format!("{scheme}://bucket/a b/x.npy");
        let told = run(&["sum", &url], &server.url(), folder.path());
        let targets: Vec<_> =
            server.log.requests.lock().unwrap().iter().map(|r| r.target.clone()).collect();
        assert_eq!(String::from_utf8(told.stdout).unwrap(), expected, "{scheme}: {targets:?}");
    }
    let requests = server.log.requests.lock().unwrap();
    let signed =
        |r: &&server::Request| r.authorization.as_ref().is_some_and(|a| a.contains("someone"));
    assert!(requests.iter().any(|r| signed(&r)), "{requests:?}");
}

#[test]
fn several_ranges_are_in_flight_and_each_is_asked_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = npy(6_000_000);
    std::fs::write(folder.path().join("x.npy"), &bytes).unwrap();
    let len = bytes.len();
    let server = Server::start([("/x.npy", sound(bytes))], Duration::from_millis(30));
    let url = format!("{}/x.npy", server.url());
    let expected = answer(&["sum", "--hex", "x.npy"], "", folder.path());
    assert_eq!(answer(&["sum", "--hex", "-j2", &url], "", folder.path()), expected);
    let most = server.log.most_in_flight.load(Ordering::SeqCst);
    assert!(most >= 4, "{most} in flight");
    let asked = server.bytes_asked();
    assert!(asked >= len && asked <= len + len / 50, "{asked} bytes of {len}");
    let requests = server.log.requests.lock().unwrap().len();
    assert!(requests <= 30, "{requests} requests");
}

#[test]
fn a_column_of_a_table_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..20).map(|i| format!("c{i}")).collect();
    let row = |i: usize| {
        let cells: Vec<String> =
            (0..20).map(|c| format!("{}", (i * 31 + c * 17) as f64 / 7.0)).collect();
        cells.join(",") + "\n"
    };
    let rows: String = (0..40_000).map(row).collect();
    std::fs::write(folder.path().join("t.csv"), format!("{}\n{rows}", names.join(","))).unwrap();
    let columns = names[1..].join(",");
    let words = ["sum", "--by", "c0", "-c", &columns, "t.csv", "-o", "t.parquet"];
    answer(&words, "", folder.path());
    let bytes = std::fs::read(folder.path().join("t.parquet")).unwrap();
    let len = bytes.len();
    let server = Server::start([("/t.parquet", sound(bytes))], Duration::ZERO);
    let url = format!("{}/t.parquet", server.url());
    let expected = answer(&["sum", "-c", "c7_sum", "t.parquet"], "", folder.path());
    assert_eq!(answer(&["sum", "-c", "c7_sum", &url], "", folder.path()), expected);
    let asked = server.bytes_asked();
    assert!(asked < len / 4, "{asked} bytes of {len}");
}

#[test]
fn what_goes_wrong_is_told_and_ends_with_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let expired = "<Error><Code>ExpiredToken</Code><Message>It has expired.</Message></Error>";
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    let bytes = npy(200_000);
    let file = |fault, sound| File { bytes: bytes.clone(), fault, sound };
    let cases = [
        (
            "/b/denied.npy",
            file(Fault::Status(403, denied), 0),
            "the server refuses access: AccessDenied",
        ),
        (
            "/b/expired.npy",
            file(Fault::Status(400, expired), 0),
            "the server refuses access: ExpiredToken",
        ),
        (
            "/b/late.npy",
            file(Fault::Status(403, expired), 1),
            "the server refuses access: ExpiredToken",
        ),
        ("/b/unknown.npy", file(Fault::Status(401, ""), 0), "the server refuses access"),
        ("/b/half.npy", file(Fault::HalfWay, 1), "broke off"),
        ("/b/short.npy", file(Fault::HalfRange, 1), "got 0..32768"),
        ("/b/whole.npy", file(Fault::Whole, 0), "the server does not send parts of this file"),
        ("/b/changed.npy", file(Fault::Changed, 1), "the file on the server has changed"),
        ("/b/odd.npy", file(Fault::Status(418, "no coffee"), 0), "418"),
    ];
    let texts = cases.clone().map(|(path, _, text)| (path, text));
    let files = cases.map(|(path, file, _)| (path, file));
    let web = Server::start(files.clone(), Duration::ZERO);
    let server = Server::start(files, Duration::ZERO);
    for (path, text) in texts {
        for url in [format!("s3:/{path}"), format!("{}{path}", web.url())] {
            let told = complaint(&["sum", &url, "-o", "out.npy"], &server.url(), folder.path());
            assert!(told.starts_with(&format!("error: {url}: ")), "{told}");
            if path != "/b/whole.npy" || url.starts_with("http") {
                assert!(told.contains(text), "{url}: {told}");
            }
            let hinted = told.contains("AWS_ACCESS_KEY_ID") || told.contains("signed ones expire");
            assert_eq!(hinted, text.contains("refuses"), "{told}");
            assert!(!folder.path().join("out.npy").exists(), "{url}");
        }
    }
    let told = complaint(&["sum", "s3://b/none.npy"], &server.url(), folder.path());
    assert_eq!(told, "error: s3://b/none.npy: the server has no such file: NoSuchKey\n");
    let told = complaint(&["sum", "s3://b"], &server.url(), folder.path());
    assert!(told.contains("names no file"), "{told}");
    // Nobody is there.
    let told = complaint(&["sum", "http://127.0.0.1:9/x.npy"], "", folder.path());
    assert!(told.starts_with("error: http://127.0.0.1:9/x.npy: "), "{told}");
}

#[test]
fn an_empty_file_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([("/x.csv", sound(Vec::new()))], Duration::ZERO);
    std::fs::write(folder.path().join("x.csv"), "").unwrap();
    let url = format!("{}/x.csv", server.url());
    let (here, there) =
        (run(&["sum", "x.csv"], "", folder.path()), run(&["sum", &url], "", folder.path()));
    assert_eq!((here.status, here.stdout), (there.status, there.stdout));
}
