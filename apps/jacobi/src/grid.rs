//! The grid: its first values, the new values of a row, and a digest that tells two grids apart.

use std::ops::Range;

/// Returns the first value of a cell: 1 on the upper edge, 0 elsewhere, and a little more along the left edge.
pub fn first_value(row: usize, column: usize) -> f64 {
    match (row, column) {
        (0, _) => 1.0,
        (row, 0) => 1.0 / (row as f64 + 1.0),
        _ => 0.0,
    }
}

/// Sets the inner cells of `target`, a whole row, to the mean of their neighbours in the rows around it.
///
/// # Panics
/// If the rows are not all as long as `target`.
pub fn relax(above: &[f64], line: &[f64], below: &[f64], target: &mut [f64]) {
    let width = target.len();
    let (above, line, below) = (&above[..width], &line[..width], &below[..width]);
    for column in 1..width - 1 {
        target[column] = 0.25 * ((above[column] + below[column]) + (line[column - 1] + line[column + 1]));
    }
}

/// Returns a number that depends on every bit of a row and on where it lies. The digest of a grid is the sum of those of
/// its rows, whoever has them (FNV-1a by words).
pub fn row_digest(row: usize, values: &[f64]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64 ^ row as u64;
    values.iter().fold(start, |hash, value| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01B3))
}

/// Returns the rows of part `part` of `parts`: blocks whose lengths differ by at most one.
pub fn rows_of(order: usize, parts: usize, part: usize) -> Range<usize> {
    order * part / parts..order * (part + 1) / parts
}

/// Returns the digest after `sweeps` sweeps, computed without places.
pub fn digest_alone(order: usize, sweeps: u64) -> u64 {
    let cells = (0..order * order).map(|cell| first_value(cell / order, cell % order));
    let mut source: Vec<f64> = cells.collect();
    let mut target = source.clone();
    for _ in 0..sweeps {
        for row in 1..order - 1 {
            let line = |row: usize| &source[row * order..(row + 1) * order];
            relax(line(row - 1), line(row), line(row + 1), &mut target[row * order..(row + 1) * order]);
        }
        std::mem::swap(&mut source, &mut target);
    }
    source.chunks(order).enumerate().fold(0, |sum, (row, values)| sum.wrapping_add(row_digest(row, values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_of_three_has_the_mean_of_its_edge() {
        let mut target = [0.5, 0.0, 0.0];
        relax(&[1.0; 3], &[0.5, 0.0, 0.0], &[1.0 / 3.0, 0.0, 0.0], &mut target);
        assert_eq!(target, [0.5, 0.375, 0.0]);
    }

    #[test]
    fn the_digest_knows_every_bit_and_every_row() {
        assert_ne!(digest_alone(9, 3), digest_alone(9, 4));
        assert_ne!(row_digest(0, &[0.0, 1.0]), row_digest(1, &[0.0, 1.0]));
        assert_ne!(row_digest(0, &[0.0]), row_digest(0, &[-0.0]));
    }

    #[test]
    fn rows_are_dealt_out_whole() {
        let rows: Vec<usize> = (0..5).flat_map(|part| rows_of(13, 5, part)).collect();
        assert_eq!(rows, (0..13).collect::<Vec<_>>());
    }
}
