//! The jail, tried for real as root and as an ordinary user: what it hides, what it stops layer by
//! layer, and which forbidden attempts it sees.

pub mod attacks;
pub mod attempts;
pub mod contained;
pub mod descriptors;
pub mod exec_flags;
pub mod exec_guard;
pub mod hostile;
pub mod layers;
pub mod masks;
pub mod shown;
pub mod strict;
pub mod supervision;
pub mod terminal;
pub mod unmapped;
