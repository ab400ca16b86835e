//! The `cto` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cto_harness::cli::main()
}
