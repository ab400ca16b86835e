//! The way to the endpoint, and what is sent on it.
//!
//! - `upstream.rs` connections; `proxy.rs` a tunnel; `roots.rs` whom TLS believes
//! - `outbound.rs` heads of requests; `way.rs` what an operator says of the way

pub mod outbound;
pub mod proxy;
pub mod roots;
pub mod upstream;
pub mod way;
