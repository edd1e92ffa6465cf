//! The controller.

fn main() {}
