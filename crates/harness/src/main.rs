//! The `cto` binary: everything is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cto_harness::cli::main()
}
