//! The side of a place that a finish of another home has reached: report, answer, vanish.
//!
//! The half of [`Finishes`] that decides nothing: it tells the home its counts. Invariant: a proxy that the home cannot
//! know of holds live tasks, or is gone.

use super::control::{Output, Violation};
use super::fault::Reason;
use super::finishes::Finishes;
use super::id::FinishId;
use super::slot::{Proxy, Role};
use crate::PlaceId;

impl Finishes {
    /// Returns the slot of a finish of another, live home, which it makes if there is none.
    pub(super) fn proxy(&mut self, id: FinishId) -> usize {
        let known = self.proxies.get((id.home, id.serial));
        let index = match known {
            Some(&index) => index as usize,
            None => {
                let index = self.occupy(Role::Proxy(Proxy::default()));
                self.slots[index].id = id;
                self.proxies.insert((id.home, id.serial), index as u32);
                index
            }
        };
        self.recent.0 = index;
        index
    }

    /// Makes a quiet proxy report if it must, and removes it if no other place knows of it.
    pub(super) fn report_if_due(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Proxy(proxy) = &slot.role else { return };
        if slot.live > 0 {
            return;
        }
        if slot.is_report_due(proxy) {
            let answers = proxy.unanswered;
            slot.role = Role::Proxy(Proxy { reported: true, known: true, question: None, unanswered: 0 });
            slot.report(answers, out);
        } else if !proxy.known {
            self.proxies.remove((slot.id.home, slot.id.serial));
            self.vacate(index);
        }
    }

    /// Handles a question of the home.
    pub(super) fn answer(
        &mut self,
        from: PlaceId,
        finish: FinishId,
        missing: u64,
        dead: Option<PlaceId>,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if finish.home != from {
            return Err(Violation::NotItsHome(finish));
        }
        if let Some(dead) = dead {
            self.membership.admit_peer(dead)?;
            self.place_died(dead, out);
        }
        if !self.membership.is_alive(from) {
            return Ok(());
        }
        let index = self.proxy(finish);
        if let Role::Proxy(proxy) = &mut self.slots[index].role {
            proxy.known = true;
            proxy.question = Some(missing);
            proxy.unanswered = proxy.unanswered.saturating_add(1);
        }
        self.report_if_due(index, out);
        Ok(())
    }

    /// Removes proxies of finishes that are over.
    pub(super) fn forget(&mut self, from: PlaceId, serials: &[u64]) -> Result<(), Violation> {
        let mut early = false;
        for &serial in serials {
            let Some(&index) = self.proxies.get((from, serial)) else { continue };
            if self.slots[index as usize].live > 0 {
                early = true;
                continue;
            }
            self.proxies.remove((from, serial));
            self.vacate(index as usize);
        }
        if early { Err(Violation::EarlyForget(from)) } else { Ok(()) }
    }

    /// Makes the proxies of a dead home orphans, and removes those that are quiet.
    pub(super) fn orphan(&mut self, home: PlaceId, out: &mut Vec<Output>) {
        let proxies: Vec<_> =
            self.proxies.range((home, 0)..=(home, u64::MAX)).map(|(_, &i)| i as usize).collect();
        for index in proxies {
            let slot = &mut self.slots[index];
            self.proxies.remove((home, slot.id.serial));
            slot.id = FinishId::NONE;
            slot.role = Role::Orphan;
            if slot.live == 0 {
                self.vacate(index);
            } else {
                slot.cancel(index, Reason::DeadHome(home), out);
            }
        }
    }
}
