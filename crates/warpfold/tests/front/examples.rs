//! The programs of `examples` run to their end; each checks its own answers.

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[path = "../../examples/vector.rs"]
mod vector;

#[test]
fn a_vector() -> Outcome {
    vector::main()
}

#[path = "../../examples/threads.rs"]
mod threads;

#[test]
fn threads_with_partials() -> Outcome {
    threads::main()
}

#[path = "../../examples/socket.rs"]
mod socket;

#[test]
fn chunks_of_a_socket() -> Outcome {
    socket::main()
}

#[cfg(feature = "ndarray")]
#[path = "../../examples/axis.rs"]
mod axis;

#[cfg(feature = "ndarray")]
#[test]
fn an_axis_of_an_array() -> Outcome {
    axis::main()
}

#[cfg(feature = "arrow")]
#[path = "../../examples/column.rs"]
mod column;

#[cfg(feature = "arrow")]
#[test]
fn a_column_with_nulls() -> Outcome {
    column::main()
}

#[cfg(feature = "cudarc")]
#[path = "../../examples/device.rs"]
mod device;

#[cfg(feature = "cudarc")]
#[test]
fn slices_of_a_device() -> Outcome {
    device::main()
}
