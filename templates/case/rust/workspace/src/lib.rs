//! Names.

/// The initials of `name`.
pub fn initials(name: &str) -> String {
    name.chars().take(1).collect()
}
