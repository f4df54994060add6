//! Choices by measurement: finds the memory of a modelled chip that suits an object, from the program's own accesses.
//!
//! An object does not show how it will be used, so the program provides a trial, which is run with each kind of memory.
//! Invariant: time is that of the machine, so on a modelled chip one program always makes the same choice.

use super::SharedOptions;
use super::table::incoherent_memory;
use isles_protocol::shared::MemoryKind;
use isles_runtime::{Local, Result, now};
use std::time::Duration;

impl SharedOptions {
    /// Returns these options with the kind of memory in which `trial` takes the least time at this place. The trial
    /// makes an object with the options that it gets, and uses it as the program will. Each kind is tried once. On
    /// other machines nothing is tried, because the kind means nothing there.
    ///
    /// ```ignore
    /// let options = SharedOptions::default().measured(async |options| {
    ///     let table = Shared::with(Mapping::<u64>::new(500), options).await?;
    ///     use_as_later(&table).await
    /// });
    /// let table = Shared::with(Mapping::<u64>::new(500), options.await?).await?;
    /// ```
    ///
    /// # Errors
    /// The error of a trial.
    pub async fn measured(
        self,
        mut trial: impl AsyncFnMut(SharedOptions) -> Result<()>,
    ) -> Result<SharedOptions> {
        if Local::with(|local| incoherent_memory(local).is_none()) {
            return Ok(self);
        }
        let mut fastest: Option<(Duration, SharedOptions)> = None;
        for kind in [MemoryKind::Cached, MemoryKind::Through, MemoryKind::Uncached] {
            let options = self.memory(kind);
            let started = now();
            trial(options).await?;
            let time = now() - started;
            if fastest.is_none_or(|(least, _)| time < least) {
                fastest = Some((time, options));
            }
        }
        Ok(fastest.map_or(self, |(_, options)| options))
    }
}
