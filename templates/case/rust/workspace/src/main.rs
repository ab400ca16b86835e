//! Prints the initials of the name it is given.

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    println!("{}", initials::initials(&name));
}
