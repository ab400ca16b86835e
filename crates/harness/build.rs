//! Cases, templates and engine manifests are embedded: a change there rebuilds the binary.

fn main() {
    for dir in ["../../cases", "../../engines", "../../templates"] {
        println!("cargo:rerun-if-changed={dir}");
    }
}
