//! Failure detector: ranks of different hosts watch each other, and decide when one is lost.
//!
//! Neither library reports that a link goes down, or that a process exits normally in the middle of a run. So hosts
//! form a ring, and heartbeats go by UDP between neighbours in it: from the first rank of a host to all ranks of the
//! next, and back. They begin before the ranks have met, so that each rank has heard its partners when it knows that
//! the library reaches all; a partner not heard by then is not reachable by UDP. A pure state machine, driven by the
//! thread of the bell. Invariants: heartbeats are mutual; a rank that is not reachable by UDP, or has announced its
//! leave, is never lost.

use std::time::Duration;

/// Length of a heartbeat.
pub const HEARTBEAT_BYTES: usize = 13;

/// Number of heartbeat periods without a look, after which this process cannot blame others: it was not running itself.
const ABSENCES: u32 = 2;

/// State that a rank announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// It is running.
    Alive = 1,
    /// It leaves in good order.
    Leaving = 2,
}

/// Returns the wire form of a heartbeat of `rank` in the run with this number.
pub fn to_bytes(heartbeat: Heartbeat, run: u64, rank: u32) -> [u8; HEARTBEAT_BYTES] {
    let mut bytes = [0; HEARTBEAT_BYTES];
    bytes[0] = heartbeat as u8;
    bytes[1..9].copy_from_slice(&run.to_le_bytes());
    bytes[9..].copy_from_slice(&rank.to_le_bytes());
    bytes
}

/// Decodes a heartbeat that [`to_bytes`] encoded for this run; returns `None` for other bytes.
pub fn from_bytes(bytes: &[u8], run: u64) -> Option<(Heartbeat, u32)> {
    let bytes: &[u8; HEARTBEAT_BYTES] = bytes.try_into().ok()?;
    let heartbeat = match bytes[0] {
        1 => Heartbeat::Alive,
        2 => Heartbeat::Leaving,
        _ => return None,
    };
    let (its_run, rank) = bytes[1..].split_first_chunk::<8>()?;
    (u64::from_le_bytes(*its_run) == run).then_some((heartbeat, u32::from_le_bytes(rank.try_into().ok()?)))
}

/// A rank that exchanges heartbeats with this one.
#[derive(Clone, Debug)]
struct Partner {
    rank: u32,
    /// Time of its last heartbeat; `None` before the first.
    heard: Option<Duration>,
}

/// The failure detector of one rank.
#[derive(Clone, Debug)]
pub struct FailureDetector {
    rank: u32,
    run: u64,
    /// Longest silence of a partner.
    limit: Duration,
    partners: Vec<Partner>,
    /// Time since which ranks that were never heard count as silent; `None` once all ranks have met.
    since: Option<Duration>,
    looked: Duration,
}

impl FailureDetector {
    /// Makes the detector of `rank` in the run with this number; `hosts` has the host of each rank, in any numbering.
    #[must_use]
    pub fn new(rank: u32, run: u64, hosts: &[u32], limit: Duration) -> FailureDetector {
        let partners = partners(rank as usize, hosts);
        let partners = partners.into_iter().map(|rank| Partner { rank: rank as u32, heard: None }).collect();
        FailureDetector { rank, run, limit, partners, since: Some(Duration::ZERO), looked: Duration::ZERO }
    }

    /// Returns the rank of the detector.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the longest silence allowed to a partner.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the interval of heartbeats.
    pub fn period(&self) -> Duration {
        self.limit / 5
    }

    /// Returns the ranks to which heartbeats go.
    pub fn partners(&self) -> impl Iterator<Item = u32> + '_ {
        self.partners.iter().map(|partner| partner.rank)
    }

    /// Returns the wire form of a heartbeat.
    pub fn heartbeat(&self, heartbeat: Heartbeat) -> [u8; HEARTBEAT_BYTES] {
        to_bytes(heartbeat, self.run, self.rank)
    }

    /// Handles what the bell has received at `now`; ignores bytes that are no heartbeat of this run.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) {
        let Some((heartbeat, rank)) = from_bytes(bytes, self.run) else { return };
        let Some(partner) = self.partners.iter_mut().find(|partner| partner.rank == rank) else { return };
        match heartbeat {
            Heartbeat::Alive => partner.heard = Some(now),
            // Heartbeats may arrive after the leave, so the rank is no longer a partner.
            Heartbeat::Leaving => self.partners.retain(|partner| partner.rank != rank),
        }
    }

    /// Records that all ranks have met over the library, so the links work: a rank that was never heard is not watched
    /// until it is.
    pub fn all_connected(&mut self) {
        self.since = None;
    }

    /// Returns the partner that has been silent too long at `now`, if any. Call it at least once each
    /// [`FailureDetector::period`].
    pub fn check(&mut self, now: Duration) -> Option<u32> {
        let absence = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        if absence > self.period() * ABSENCES {
            // Messages sent meanwhile may still wait to be received.
            self.partners
                .iter_mut()
                .filter(|partner| partner.heard.is_some())
                .for_each(|partner| partner.heard = Some(now));
            self.since = self.since.and(Some(now));
        }
        let silent = |heard: Duration| now.saturating_sub(heard) > self.limit;
        let is_lost = |partner: &&Partner| partner.heard.or(self.since).is_some_and(silent);
        self.partners.iter().find(is_lost).map(|partner| partner.rank)
    }
}

/// Returns the ranks with which `rank` exchanges heartbeats.
fn partners(rank: usize, hosts: &[u32]) -> Vec<usize> {
    // The first rank of each host, in order.
    let firsts: Vec<usize> =
        (0..hosts.len()).filter(|rank| !hosts[..*rank].contains(&hosts[*rank])).collect();
    let own = firsts.iter().position(|first| hosts[*first] == hosts[rank]).unwrap_or(0);
    let count = firsts.len();
    let mut neighbours = vec![(own + 1) % count, (own + count - 1) % count];
    neighbours.dedup();
    neighbours.retain(|neighbour| *neighbour != own);
    let is_first = firsts[own] == rank;
    let of_host = |host: usize| (0..hosts.len()).filter(move |other| hosts[*other] == host as u32);
    neighbours
        .into_iter()
        .flat_map(|neighbour| {
            let first = firsts[neighbour];
            let all: Vec<usize> =
                if is_first { of_host(hosts[first] as usize).collect() } else { vec![first] };
            all
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Runs a detector that hears each partner every second, `silent` only before `until`, and checks every second up
    /// to `end`.
    fn heard_until(watch: &mut FailureDetector, silent: u32, until: u64, end: u64) -> Option<(u64, u32)> {
        for second in 0..=end {
            let partners: Vec<u32> = watch.partners().collect();
            for partner in partners.into_iter().filter(|partner| *partner != silent || second < until) {
                watch.receive(&to_bytes(Heartbeat::Alive, 7, partner), seconds(second));
            }
            if let Some(lost) = watch.check(seconds(second)) {
                return Some((second, lost));
            }
        }
        None
    }

    #[test]
    fn a_silent_partner_is_lost_after_the_limit_and_nobody_before() {
        let mut watch = FailureDetector::new(0, 7, &[0, 0, 1, 1, 2], LIMIT);
        assert_eq!(watch.partners().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(heard_until(&mut watch.clone(), 3, 10, 30), Some((15, 3)));
        assert_eq!(heard_until(&mut watch, 3, 31, 30), None);
    }

    #[test]
    fn who_was_not_heard_when_all_had_met_or_has_left_is_not_lost() {
        let mut watch = FailureDetector::new(0, 7, &[0, 1], LIMIT);
        watch.all_connected();
        assert_eq!(heard_until(&mut watch, 1, 0, 30), None);
        watch.receive(&to_bytes(Heartbeat::Alive, 7, 1), seconds(31));
        watch.receive(&to_bytes(Heartbeat::Leaving, 7, 1), seconds(31));
        watch.receive(&to_bytes(Heartbeat::Alive, 7, 1), seconds(31));
        assert!((32..60).all(|second| watch.check(seconds(second)).is_none()));
    }

    #[test]
    fn who_is_not_heard_at_all_is_lost_unless_all_meet() {
        let watch = FailureDetector::new(0, 7, &[0, 1, 2], LIMIT);
        assert_eq!(heard_until(&mut watch.clone(), 2, 0, 30), Some((6, 2)));
        let mut met = watch.clone();
        assert_eq!(heard_until(&mut met, 2, 0, 4), None);
        met.all_connected();
        assert_eq!(heard_until(&mut met, 2, 0, 30), None);
        let mut stopped = watch;
        assert_eq!(stopped.check(seconds(0)), None);
        assert!((100..=105).all(|second| stopped.check(seconds(second)).is_none()));
        assert_eq!(stopped.check(seconds(106)), Some(1));
    }

    #[test]
    fn who_was_stopped_itself_blames_nobody() {
        let mut watch = FailureDetector::new(0, 7, &[0, 1], LIMIT);
        assert_eq!(heard_until(&mut watch, 1, 4, 3), None);
        assert_eq!(watch.check(seconds(100)), None);
        assert!((101..=105).all(|second| watch.check(seconds(second)).is_none()));
        assert_eq!(watch.check(seconds(106)), Some(1));
    }

    #[test]
    fn strangers_are_not_heard() {
        let good = to_bytes(Heartbeat::Alive, 7, 3);
        assert_eq!(from_bytes(&good, 7), Some((Heartbeat::Alive, 3)));
        assert_eq!(from_bytes(&good, 8), None);
        assert_eq!(from_bytes(&good[..12], 7), None);
        assert_eq!(from_bytes(&[9; HEARTBEAT_BYTES], u64::from_le_bytes([9; 8])), None);
    }

    proptest! {
        /// Heartbeats are mutual and only between hosts, and each host learns of the end of any rank of another.
        #[test]
        fn who_beats_for_whom_is_mutual(hosts in proptest::collection::vec(0..5_u32, 1..40)) {
            let all: Vec<Vec<usize>> = (0..hosts.len()).map(|rank| partners(rank, &hosts)).collect();
            let is_alone = hosts.iter().all(|host| *host == hosts[0]);
            for (rank, own) in all.iter().enumerate() {
                prop_assert_eq!(own.is_empty(), is_alone);
                for other in own {
                    prop_assert_ne!(hosts[rank], hosts[*other]);
                    prop_assert!(all[*other].contains(&rank), "{} beats for {}, alone", rank, other);
                }
            }
        }
    }
}
