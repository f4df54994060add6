//! Periodic flows of lines over the links of a chip.
//!
//! The wait at each link of a flow's route is that of [`flow::periodic_wait`]; the jitter of other flows there follows
//! from their earlier waits. Dimension-order routes of a mesh have no cycles, so the iteration over all flows
//! terminates. The total wait is limited to that of [`flow::paid_once`].

use super::NoBound;
use super::flow::{self, PeriodicFlow};
use crate::quantity::Picoseconds;
use crate::topology::{CoreId, Link, LinkId, Topology};
use crate::{Chip, Preset};

/// Lines that one core writes to another, at least `period` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFlow {
    /// Core that writes.
    pub from: CoreId,
    /// Core whose buffer is written.
    pub to: CoreId,
    /// Minimum time between two lines.
    pub period: Picoseconds,
}

/// Maximum time of a flow's line, from its entry until its last flit has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowBound {
    /// Time without other flows.
    pub alone: Picoseconds,
    /// Time of waiting at links.
    pub wait: Picoseconds,
}

/// Returns the bounds of all flows, if links serve packets in the order of arrival.
///
/// # Errors
/// [`NoBound::Overload`]: flows use the whole capacity of a link, or more.
pub fn line_flows(chip: &Chip, preset: &Preset, flows: &[LineFlow]) -> Result<Vec<FlowBound>, NoBound> {
    let topology = chip.topology();
    let pace = chip.links().pace(preset.clocks());
    let flits = chip.links().flits(chip.caches().line.0);
    let hold = Picoseconds(pace.flit.0 * flits + pace.recovery.0);
    let route = |flow: &LineFlow| -> Vec<Link> {
        topology.route(topology.tile_of(flow.from), topology.tile_of(flow.to)).collect()
    };
    let routes: Vec<Vec<Link>> = flows.iter().map(route).collect();
    check_loads(topology, flows, &routes, hold)?;
    let periodic = |flow: usize, jitter| PeriodicFlow { hold, period: flows[flow].period, jitter };
    // Maximum earlier wait of a packet, by flow and link of its route.
    let mut before: Vec<Vec<Picoseconds>> =
        routes.iter().map(|route| vec![Picoseconds::ZERO; route.len() + 1]).collect();
    loop {
        let mut next = before.clone();
        for (number, route) in routes.iter().enumerate() {
            let mut waited = Picoseconds::ZERO;
            for (at, link) in route.iter().enumerate() {
                next[number][at] = waited;
                let others: Vec<PeriodicFlow> = (0..flows.len())
                    .filter(|other| *other != number)
                    .filter_map(|other| {
                        let there = routes[other].iter().position(|used| used == link)?;
                        Some(periodic(other, before[other][there]))
                    })
                    .collect();
                let own = periodic(number, before[number][at]);
                let wait = flow::periodic_wait(own, &others);
                waited += wait.ok_or_else(|| overload(topology, &routes, *link))?;
            }
            next[number][route.len()] = waited;
        }
        if next == before {
            break;
        }
        before = next;
    }
    Ok((0..flows.len())
        .map(|number| {
            let met = |other: &usize| {
                *other != number && routes[*other].iter().any(|link| routes[number].contains(link))
            };
            // A packet of another flow may be delayed by the maximum of that flow anywhere.
            let late = |other: usize| periodic(other, before[other][routes[other].len()]);
            let others: Vec<PeriodicFlow> = (0..flows.len()).filter(met).map(late).collect();
            let by_link = before[number][routes[number].len()];
            let wait = flow::paid_once(&others).map_or(by_link, |once| once.min(by_link));
            FlowBound { alone: pace.alone(routes[number].len(), flits), wait }
        })
        .collect())
}

fn check_loads(
    topology: &Topology,
    flows: &[LineFlow],
    routes: &[Vec<Link>],
    hold: Picoseconds,
) -> Result<(), NoBound> {
    for link in topology.links() {
        let users = (0..flows.len()).filter(|flow| routes[*flow].contains(&link));
        let loads: Vec<PeriodicFlow> = users
            .map(|flow| PeriodicFlow { hold, period: flows[flow].period, jitter: Picoseconds::ZERO })
            .collect();
        if !flow::is_bounded(&loads) {
            return Err(overload(topology, routes, link));
        }
    }
    Ok(())
}

fn overload(topology: &Topology, routes: &[Vec<Link>], link: Link) -> NoBound {
    let id: LinkId = topology.link_id(link);
    let uses = |route: &Vec<Link>| route.iter().any(|used| topology.link_id(*used) == id);
    let flows = (0..routes.len()).filter(|flow| uses(&routes[*flow])).collect();
    NoBound::Overload { tile: link.tile, port: link.port, flows }
}
