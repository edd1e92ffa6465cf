//! A real control plane, a controller beside it, and eyes on what both of them do.
//!
//! Nothing here waits for a time to pass: conditions are awaited on watches, with a deadline that tells what was seen
//! last. What the server did is read from its audit log.

mod audit;
mod bed;
mod controller;
mod dump;
mod gitops;
mod installation;
pub mod nodes;
mod objects;
mod plan;
mod readers;
mod record;
pub mod rows;
mod said;
mod signals;
mod space;
mod testbed;
mod webhook;

pub use audit::{Audit, Request};
pub use bed::Bed;
pub use controller::Controller;
pub use dump::dump;
pub use installation::Installation;
pub use nodes::{cordoned, marks};
pub use objects::{Template, allowed, is_ready, node_of, owned_by, pods_told, ready_pods, terminating, uid};
pub use plan::{PlanRun, told};
pub use readers::Readers;
pub use record::{Record, Recorder, Sight};
pub use signals::interrupted;
pub use space::Space;
pub use testbed::Testbed;
pub use webhook::Webhook;
