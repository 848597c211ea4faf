//! Seeds for the fuzz targets: small valid files of every format.

use crate::common::npy;
use crate::{binary, compressed, tables};
use std::path::{Path, PathBuf};
use zip::CompressionMethod;

#[test]
#[ignore = "writes fuzz/corpus; run it before fuzzing"]
fn write_seeds() {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let corpus = std::env::var_os("WARPFOLD_CORPUS").map_or_else(usual, PathBuf::from);
    let write = |target: &str, name: &str, bytes: &[u8]| {
        for target in [target, "sniff"] {
            std::fs::create_dir_all(corpus.join(target)).unwrap();
            std::fs::write(corpus.join(target).join(name), bytes).unwrap();
        }
    };
    let plain = npy(1, "'<f8'", false, "(2, 3)", &[7; 48]);
    let record = npy(3, "[('a', '<f4'), ('b', '>i8', (2,)), ('c', '>u2')]", true, "(2,)", &[1; 44]);
    write("npy", "plain", &plain);
    write("npy", "record", &record);
    let members = [("a.npy", plain.clone()), ("b/c.npy", record)];
    for (name, method) in
        [("stored", CompressionMethod::Stored), ("deflated", CompressionMethod::Deflated)]
    {
        write("npz", name, &binary::npz(&members, method, false));
        write("npz", &format!("{name}-64"), &binary::npz(&members[..1], method, true));
    }
    write("csv", "table", b"\x0ca,\"b \"\"c\"\"\",d\n1,2.5e-3,x\n,\"nan\",y\r\n\n+3,inf,\"z\n\"\n");
    write("csv", "semicolons", b"\x04\xef\xbb\xbf1;2\n3;4\n");
    write("numbers", "lines", b"\x0c1 2\n\t3.5e7 -inf\n\nnan\n");
    write("numbers", "integers", b"\x041 -9223372036854775808 18446744073709551616");
    let header = r#"{"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"__metadata__":{}}"#;
    write("safetensors", "one", &binary::safetensors(header, &[3; 8]));
    for (name, bytes, stream) in tables::arrow_seeds() {
        write(if stream { "arrow_stream" } else { "arrow" }, &name, &bytes);
    }
    for codec in ["gz", "zst", "bz2", "xz", "lz4"] {
        let (front, back) = (&b"a,b\n1,2\n3"[..], &b",4\n5,6\n"[..]);
        let packed = [compressed::pack(codec, front), compressed::pack(codec, back)].concat();
        write("compressed", codec, &packed);
        write("compressed", &format!("{codec}-npy"), &compressed::pack(codec, &plain));
    }
    for (name, bytes) in tables::parquet_seeds() {
        write("parquet", &name, &bytes);
    }
}
