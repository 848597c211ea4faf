//! `--mpi` where there is no MPI library, or something else. What ranks answer is in
//! `tests/everywhere`, which has the libraries.

use crate::common::{Dir, Run};

fn complaint(library: &str) -> String {
    let dir = Dir::new();
    dir.f64s("x.npy", &[2], &[1.0, 2.0]);
    let mut command = dir.command("sum --mpi x.npy");
    Run::from(command.env("WARPFOLD_MPI_LIBRARY", library).output().unwrap()).failure(1)
}

#[test]
fn a_missing_library_is_named() {
    let complaint = complaint("/nowhere/libmpi.so");
    assert!(complaint.contains("no MPI library can be loaded: /nowhere/libmpi.so"), "{complaint}");
    assert!(
        complaint.contains("hint: install Open MPI or MPICH, or name the library"),
        "{complaint}"
    );
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn another_library_is_none_of_mpi() {
    let complaint = complaint("libc.so.6");
    assert!(complaint.contains("libc.so.6: this is no MPI library"), "{complaint}");
    assert!(complaint.contains("hint: name a library of Open MPI, MPICH"), "{complaint}");
}
