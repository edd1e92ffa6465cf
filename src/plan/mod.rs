//! What to do now.
