//! ROOM.

pub mod attacks;
pub mod attempts;
pub mod contained;
pub mod hostile;
pub mod layers;
pub mod strict;
