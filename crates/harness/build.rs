//! Cases and engine manifests are embedded: a change there rebuilds the binary.

fn main() {
    for dir in ["../../cases", "../../engines"] {
        println!("cargo:rerun-if-changed={dir}");
    }
}
