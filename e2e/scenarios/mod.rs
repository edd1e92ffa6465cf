//! The cases, one file for each theme.

mod explained;
mod gentle;
mod refusals;
mod restart;

use crate::runner::Case;

/// All cases.
pub fn all() -> Vec<Case> {
    let themes = [gentle::cases(), explained::cases(), restart::cases(), refusals::cases()];
    let mut all: Vec<Case> = themes.into_iter().flatten().collect();
    all.sort_by_key(|case| case.number);
    all
}

/// A case that others may run beside.
macro_rules! shared {
    ($number:literal, $name:ident) => {
        crate::runner::Case {
            number: $number,
            name: stringify!($name),
            alone: false,
            run: |bed| Box::pin($name(bed)),
        }
    };
}

/// A case that disturbs what others need.
macro_rules! alone {
    ($number:literal, $name:ident) => {
        crate::runner::Case {
            number: $number,
            name: stringify!($name),
            alone: true,
            run: |bed| Box::pin($name(bed)),
        }
    };
}

pub(crate) use {alone, shared};
