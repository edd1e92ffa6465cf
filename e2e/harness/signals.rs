//! Ctrl-C and SIGTERM, so that clusters go also then.

use tokio::signal::unix::{SignalKind, signal};

/// Returns when somebody wants this process to end.
pub async fn interrupted() {
    let wait = async {
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    };
    if let Err(error) = wait.await {
        eprintln!("no signal can be received: {error}");
        std::future::pending::<()>().await;
    }
}
