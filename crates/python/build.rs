//! What the linker needs to know of symbols that Python brings: on macOS they are looked
//! up when the module is loaded.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
