//! What users write and read.
