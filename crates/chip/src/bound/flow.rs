//! Bounds of waits at links, from the literature on real-time networks: packets that interfere once, periodic flows,
//! token buckets, and time-division slots.
//!
//! These are functions of numbers; [`Interference`](super::Interference) determines the packets that may meet on a
//! link. The sources: the response-time analysis of periodic tasks (Joseph and Pandya, 1986; with jitter, Tindell,
//! 1994) for one link; the trajectory of a packet in order of arrival (Martin and Minet, 2006; on networks on chip,
//! Ferrandiz, Frances and Fraboul, 2009) for packets that are paid once; network calculus (Le Boudec and Thiran, 2001)
//! for token buckets; Argo (Kasapaki et al., 2016) for time division.

use crate::quantity::Picoseconds;
use crate::topology::{TileId, Topology};

/// Packets that enter at least `period` apart and hold a link for `hold` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicFlow {
    /// Time for which a packet holds a link, including the recovery.
    pub hold: Picoseconds,
    /// Minimum time between two packets at their source.
    pub period: Picoseconds,
    /// Maximum delay of a packet at the link relative to one without waits.
    pub jitter: Picoseconds,
}

impl PeriodicFlow {
    /// Returns the utilisation of a link by the flow, in billionths, rounded up.
    fn load(&self) -> u128 {
        (u128::from(self.hold.0) * 1_000_000_000).div_ceil(u128::from(self.period.0.max(1)))
    }

    /// Returns the maximum number of packets that can reach the link in `[start, start + window]`, both ends included.
    fn arrivals(&self, window: Picoseconds) -> u64 {
        1 + (window + self.jitter).0 / self.period.0.max(1)
    }
}

/// Returns `true` if the flows use less than the capacity of a link; otherwise its queue may grow without bound.
pub fn is_bounded(flows: &[PeriodicFlow]) -> bool {
    flows.iter().map(PeriodicFlow::load).sum::<u128>() < 1_000_000_000
}

/// Returns the maximum wait of a packet at one link that serves packets in the order of arrival, if `others` use it
/// too; `None` if together with `own` they use its whole capacity.
///
/// `max over t of Σ C_j (1 + ⌊(t + J_j) / T_j⌋) - t`: the packet arrives `t` after the start of a busy period, and
/// everything that arrives before it or with it is served first. Only times at which a packet arrives can be the worst.
pub fn periodic_wait(own: PeriodicFlow, others: &[PeriodicFlow]) -> Option<Picoseconds> {
    let all: Vec<PeriodicFlow> = others.iter().copied().chain([own]).collect();
    if !is_bounded(&all) {
        return None;
    }
    let demand = |window: u64, flows: &[PeriodicFlow]| -> u64 {
        flows.iter().map(|flow| flow.hold.0 * flow.arrivals(Picoseconds(window))).sum()
    };
    // The packet's own flow has sent `⌊(t + J) / T⌋` packets before this one.
    let waits = |at: u64| {
        let before = demand(at, others) + own.hold.0 * (own.arrivals(Picoseconds(at)) - 1);
        before.saturating_sub(at)
    };
    // The busy period ends when all demand so far has been served.
    let mut end = demand(0, &all);
    while demand(end, &all) > end {
        end = demand(end, &all);
    }
    let moments = all.iter().flat_map(|flow| {
        let first = flow.jitter.0.div_ceil(flow.period.0);
        (first..).map(|number| number * flow.period.0 - flow.jitter.0).take_while(|at| *at <= end)
    });
    moments.chain([0]).map(waits).max().map(Picoseconds)
}

/// Returns the maximum wait of a packet on its whole route if each interfering packet delays it on at most one shared
/// section: the least `W` with `W = Σ C_j ⌈(W + J_j) / T_j⌉`; `None` if there is none.
///
/// It holds for links that serve in the order of arrival with equal hop times, and for routes that meet in at most one
/// section, as in a mesh with dimension-order routing.
pub fn paid_once(others: &[PeriodicFlow]) -> Option<Picoseconds> {
    if !is_bounded(others) {
        return None;
    }
    let demand = |wait: u64| -> u64 {
        let packets = |flow: &PeriodicFlow| (wait + flow.jitter.0).div_ceil(flow.period.0.max(1)).max(1);
        others.iter().map(|flow| flow.hold.0 * packets(flow)).sum()
    };
    let mut wait = 0;
    while demand(wait) > wait {
        wait = demand(wait);
    }
    Some(Picoseconds(wait))
}

/// A flow of at most `burst + rate · t` units in any time `t` (network calculus).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    /// Units that may arrive at once.
    pub burst: f64,
    /// Units per unit of time.
    pub rate: f64,
}

/// A server that gives a backlogged flow at least `rate · (t - latency)` units in time `t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLatency {
    /// Units per unit of time.
    pub rate: f64,
    /// Longest time without service.
    pub latency: f64,
}

impl RateLatency {
    /// Returns the maximum delay of a unit of `flow`: `T + σ / R`; `None` if the flow is faster than the server.
    pub fn delay(&self, flow: TokenBucket) -> Option<f64> {
        (flow.rate <= self.rate && self.rate > 0.0).then(|| self.latency + flow.burst / self.rate)
    }

    /// Returns the service left to a flow if another one is served first: rate `R - ρ`, latency `T + (σ + ρ T) / (R -
    /// ρ)`; `None` if nothing is left.
    pub fn beside(&self, other: TokenBucket) -> Option<RateLatency> {
        let rate = self.rate - other.rate;
        let latency = || self.latency + (other.burst + other.rate * self.latency) / rate;
        (rate > 0.0).then(|| RateLatency { rate, latency: latency() })
    }
}

/// Returns the number of slots of the shortest time-division period in which each tile can send one packet to each
/// other tile, if a slot is the time for which a packet holds a link: the maximum number of routes over a link.
pub fn time_division_slots(topology: &Topology) -> u32 {
    let mut routes = vec![0_u32; topology.link_slots() as usize];
    for from in (0..topology.tiles()).map(TileId) {
        for to in (0..topology.tiles()).map(TileId) {
            topology.route(from, to).for_each(|link| routes[topology.link_id(link).0 as usize] += 1);
        }
    }
    routes.into_iter().max().unwrap_or(0)
}

/// Returns the maximum time of a packet to its target if each tile has one slot of the period for each other tile: it
/// waits for at most a whole period, and then meets no contention.
pub fn time_division_bound(topology: &Topology, slot: Picoseconds, alone: Picoseconds) -> Picoseconds {
    slot * u64::from(time_division_slots(topology)) + alone
}

/// Returns the latest time at which the `item`-th item of a burst, counted from 1, leaves a pipeline. Each stage is
/// `(work, message)`, and items follow each other at the rate of the slowest stage.
pub fn pipeline_bound(stages: &[(Picoseconds, Picoseconds)], item: u64) -> Picoseconds {
    let stage = |(work, message): &(Picoseconds, Picoseconds)| *work + *message;
    let slowest = stages.iter().map(stage).max().unwrap_or(Picoseconds::ZERO);
    stages.iter().map(stage).sum::<Picoseconds>() + slowest * item.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Shape;

    fn flow(hold: u64, period: u64, jitter: u64) -> PeriodicFlow {
        PeriodicFlow { hold: Picoseconds(hold), period: Picoseconds(period), jitter: Picoseconds(jitter) }
    }

    #[test]
    fn a_packet_waits_for_one_of_each_flow_that_seldom_comes() {
        let others = [flow(15, 1_000, 0), flow(15, 1_000, 0), flow(20, 1_000, 0)];
        assert_eq!(periodic_wait(flow(15, 1_000, 0), &others), Some(Picoseconds(50)));
        assert_eq!(paid_once(&others), Some(Picoseconds(50)));
    }

    #[test]
    fn jitter_lets_a_second_packet_come() {
        // Two packets of the other flow are back to back: one was late by 90 of 100.
        assert_eq!(periodic_wait(flow(10, 100, 0), &[flow(20, 100, 90)]), Some(Picoseconds(30)));
        assert_eq!(paid_once(&[flow(20, 100, 90)]), Some(Picoseconds(40)));
    }

    #[test]
    fn a_link_that_is_asked_for_all_it_has_has_no_bound() {
        assert_eq!(periodic_wait(flow(15, 30, 0), &[flow(15, 30, 0)]), None);
        assert_eq!(periodic_wait(flow(15, 30, 0), &[flow(14, 30, 0)]), Some(Picoseconds(14)));
        assert_eq!(paid_once(&[flow(30, 30, 0)]), None);
    }

    #[test]
    fn what_token_buckets_wait_for_by_hand() {
        let server = RateLatency { rate: 1.0, latency: 4.0 };
        let flow = TokenBucket { burst: 9.0, rate: 0.2 };
        assert_eq!(server.delay(flow), Some(13.0));
        let left = server.beside(TokenBucket { burst: 3.0, rate: 0.2 }).unwrap();
        assert!((left.latency - 8.75).abs() < 1e-12 && (left.rate - 0.8).abs() < 1e-12, "{left:?}");
        assert!((left.delay(flow).unwrap() - 20.0).abs() < 1e-12);
        // One queue for both: the bursts add up.
        assert_eq!(server.delay(TokenBucket { burst: 12.0, rate: 0.4 }), Some(16.0));
        assert_eq!(server.beside(TokenBucket { burst: 1.0, rate: 1.0 }), None);
    }

    #[test]
    fn slots_are_as_many_as_routes_over_the_most_loaded_link() {
        let scc = Topology::new(Shape::Mesh, [6, 4, 1], 2).unwrap();
        // 3 columns to the left of the middle, 3 to the right, 4 rows of targets.
        assert_eq!(time_division_slots(&scc), 36);
        // 36 slots of 15 ns, and 8 hops alone.
        let bound = time_division_bound(&scc, Picoseconds(15_000), Picoseconds(43_750));
        assert_eq!(bound, Picoseconds(583_750));
        assert_eq!(time_division_slots(&Topology::new(Shape::Mesh, [2, 1, 1], 1).unwrap()), 1);
    }

    #[test]
    fn items_leave_a_pipeline_as_its_slowest_stage_lets_them() {
        let stages =
            [(10, 3), (20, 3), (15, 0)].map(|(work, message)| (Picoseconds(work), Picoseconds(message)));
        let left = [1, 2, 3, 4].map(|item| pipeline_bound(&stages, item));
        assert_eq!(left, [51, 74, 97, 120].map(Picoseconds));
    }
}
