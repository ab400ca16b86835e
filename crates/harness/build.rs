//! Cases and engine manifests are embedded: a change there rebuilds the binary.

#![expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

fn main() {
    for dir in ["../../cases", "../../engines"] {
        println!("cargo:rerun-if-changed={dir}");
    }
}
