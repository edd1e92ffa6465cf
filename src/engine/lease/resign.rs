//! Leaving the lease to the other replicas, and going on as one of them.

use tokio::sync::{mpsc, oneshot};

/// Asks for the lease to be given back. Clones are the same.
#[derive(Debug, Clone)]
pub struct Resign(mpsc::Sender<oneshot::Sender<()>>);

impl Resign {
    pub(super) fn channel() -> (Self, mpsc::Receiver<oneshot::Sender<()>>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Gives the lease back and returns when that is done, or failed and the lease will run out. From then on this replica does not
    /// act; the others can take the lease for as long as it binds, then this one may too.
    pub async fn resign(&self) {
        let (tell, told) = oneshot::channel();
        // An elector that has ended has given the lease back already.
        if self.0.send(tell).await.is_ok() {
            let _ = told.await;
        }
    }
}
