//! A thread with a runtime of its own, for what must go on however busy the handlers are.

use tokio_util::sync::CancellationToken;

/// A running thread; it ends when this is dropped.
pub(super) struct Thread {
    end: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Thread {
    /// Starts it: it does this until it ends.
    pub(super) fn start(what: impl Future<Output = ()> + Send + 'static) -> std::io::Result<Self> {
        let end = CancellationToken::new();
        let ended = end.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("meshwork-keep".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = what => {}
                        () = ended.cancelled() => {}
                    }
                });
            })?;
        let thread = Some(thread);
        Ok(Self { end, thread })
    }

    /// Ends it; returns when it is gone.
    pub(super) async fn end(mut self) {
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the thread that keeps what runs panicked");
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
