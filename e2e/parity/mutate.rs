//! Deliberate errors in the model, which the comparison must find.

use drainplan::cluster::planted::plant;

/// How many there are.
pub const MUTATIONS: u8 = 12;

/// The errors to plant one after the other; only 0, none, unless `MUTATE` says otherwise.
pub fn chosen() -> Vec<u8> {
    match std::env::var("MUTATE").as_deref() {
        Ok("all") => (1..=MUTATIONS).collect(),
        Ok(number) if !number.is_empty() => number.parse().into_iter().collect(),
        _ => vec![0],
    }
}

/// An error is planted as long as this lives. Only ever held together with the lock of the cluster, or while nobody
/// else asks it.
pub struct Planting;

impl Planting {
    pub fn of(number: u8) -> Self {
        plant(number);
        Self
    }
}

impl Drop for Planting {
    fn drop(&mut self) {
        plant(0);
    }
}
