//! Choices by measurement: which memory of a modelled chip suits an object, found by the program's own accesses.
//!
//! Nobody can tell from an object how it will be used, so the program says it by a trial, which is run with each kind
//! of memory. Invariant: time is that of the machine, so on a modelled chip one program makes one choice.

use super::SharedOptions;
use super::table::incoherent_memory;
use isles_protocol::shared::MemoryKind;
use isles_runtime::{Local, Result, now};
use std::time::Duration;

impl SharedOptions {
    /// Returns these options with the kind of memory in which `trial` takes the least time at this place. The trial
    /// makes an object with the options that it gets, and uses it as the program will. Each kind is tried once.
    /// Elsewhere than on a modelled chip nothing is tried, because the kind means nothing there.
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
