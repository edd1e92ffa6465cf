//! The wish to end: one signal, heard by every task.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

/// A request to end that any number of tasks can await. It stays once it was made.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Makes the request.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

impl Shutdown {
    /// A request and who makes it.
    #[must_use]
    pub fn channel() -> (Trigger, Self) {
        let (sender, receiver) = watch::channel(false);
        (Trigger(sender), Self(receiver))
    }

    /// Requested by SIGTERM or SIGINT. A second one ends the process at once, for whoever does not want to wait.
    pub fn on_signals() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (trigger, shutdown) = Self::channel();
        tokio::spawn(async move {
            let mut exit_code = None;
            loop {
                let code = tokio::select! {
                    _ = terminate.recv() => 128 + SignalKind::terminate().as_raw_value(),
                    _ = interrupt.recv() => 128 + SignalKind::interrupt().as_raw_value(),
                };
                if exit_code.replace(code).is_some() {
                    std::process::exit(code);
                }
                info!("ending; a second signal ends at once");
                trigger.request();
            }
        });
        Ok(shutdown)
    }

    /// Returns when the end is requested, also when it was before. A trigger that is gone counts as a request.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.0.clone();
        async move {
            let _ = receiver.wait_for(|requested| *requested).await;
        }
    }
    /// Whether the end is requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}

impl Trigger {
    /// Asks everyone to end.
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everyone_hears_a_request_before_and_after_it_was_made() {
        let (trigger, shutdown) = Shutdown::channel();
        let early = tokio::spawn(shutdown.requested());
        assert!(!shutdown.is_requested());
        trigger.request();
        early.await.unwrap();
        shutdown.clone().requested().await;
        assert!(shutdown.is_requested());
    }

    #[tokio::test]
    async fn a_lost_trigger_is_a_request() {
        let (trigger, shutdown) = Shutdown::channel();
        drop(trigger);
        shutdown.requested().await;
        assert!(shutdown.is_requested());
    }
}
