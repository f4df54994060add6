//! The cost of a call on the wire: the calls and bytes of each call site, as `ISLES_REPORT=captures` counts them.
//!
//! The sizes of the captures are computed by hand: values that a body does not use must not be in them.

use isles::prelude::*;
use isles::{Plan, RunReport};

/// A graph whose bodies use one list. Its other fields would increase the bytes; one of them cannot travel.
struct Graph {
    offsets: Vec<u32>,
    targets: Vec<u64>,
    name: String,
    rooted: Rooted,
}

struct Rooted;

impl Graph {
    fn new(vertices: u32, targets: usize) -> Graph {
        let name = "a name of some length ".repeat(targets);
        Graph { offsets: (0..=vertices).collect(), targets: vec![0; targets], name, rooted: Rooted }
    }

    async fn offset(&self, place: Place, vertex: usize) -> isles::Result<u32> {
        let _ = &self.rooted;
        at!(place, self.offsets[vertex]).await
    }

    async fn offset_twice(&self, place: Place, vertex: usize) -> isles::Result<u32> {
        at!(place, self.offsets[vertex] + self.offsets[vertex]).await
    }

    async fn listed(&self, place: Place, vertex: usize) -> isles::Result<u32> {
        at!(place, [offset = self.offsets[vertex]] offset).await
    }

    async fn two_fields(&self, place: Place) -> isles::Result<usize> {
        at!(place, self.targets.len() + self.name.len()).await
    }

    /// Uses all call sites: the first one `calls` times, the others once.
    async fn ask(&self, calls: usize) -> isles::Result<()> {
        let place = here().next();
        for _ in 0..calls {
            assert_eq!(self.offset(place, 2).await?, 2);
        }
        assert_eq!(self.offset_twice(place, 2).await?, 4);
        assert_eq!(self.listed(place, 2).await?, 2);
        assert_eq!(self.two_fields(place).await?, self.targets.len() + self.name.len());
        at!(place, ()).await?;
        finish(async { spawn_at!(place, assert_eq!(self.offsets[3], 3)) }).await
    }
}

/// Returns the calls and bytes of the sites of a program with such a graph, in the order of the lines above.
fn sites(vertices: u32, targets: usize, calls: usize) -> Vec<(u64, u64)> {
    let main = move || async move { Graph::new(vertices, targets).ask(calls).await };
    let (result, report, _): (_, RunReport, u64) = isles::simulate(2, Plan::calm(1), main);
    result.unwrap();
    // The table that `ISLES_REPORT=captures` prints: calls, bytes, bytes per call, and the site.
    let table = report.captures();
    let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let mut sites: Vec<_> = rows.filter(|row| row[3].starts_with(file!())).collect();
    let line = |site: &str| site.split(':').nth(1).and_then(|line| line.parse::<u32>().ok());
    sites.sort_by_key(|row| line(row[3]));
    let number = |text: &str| text.parse().expect("a column of numbers");
    sites.into_iter().map(|row| (number(row[0]), number(row[1]))).collect()
}

/// Bytes that identify the entry of the body and the finish that counts it.
const TASK: u64 = 8 + 16;

/// As `TASK`, and the destination of the result.
const CALL: u64 = TASK + 8;

/// Bytes of the length of a slice.
const LEN: u64 = 8;

#[test]
fn a_call_ships_the_fields_and_variables_that_its_body_uses_and_nothing_else() {
    for (vertices, targets, calls) in [(9, 1, 3), (9, 1000, 1), (109, 1, 2)] {
        let (offsets, vertex) = (LEN + 4 * (vertices as u64 + 1), size_of::<usize>() as u64);
        let (text, calls_of_first) = (22 * targets as u64, calls as u64);
        // A long slice starts at a multiple of 64 bytes; the length of a text takes one byte below 128, and three here.
        let (padding, text_len) = if targets == 1 { (0, 1) } else { (64 - (CALL + LEN), 3) };
        let expected = [
            // `self.offsets` and `vertex`, once each, however often the body names them.
            (calls_of_first, calls_of_first * (CALL + offsets + vertex)),
            (1, CALL + offsets + vertex),
            // One number.
            (1, CALL + 4),
            (1, CALL + LEN + padding + 8 * targets as u64 + text_len + text),
            (1, CALL),
            (1, TASK + offsets),
        ];
        assert_eq!(sites(vertices, targets, calls), expected, "{vertices} vertices, {targets} targets");
    }
}
