//! The height of the surface as PNG: blue below its mean, red above, land brown; north is up.
//!
//! Invariant: the strongest colours are those of the largest deviation, so a surface at rest is white.

use crate::setup::Setup;
use std::io::{self, Write};

/// Side in pixels up to which cells are magnified, and largest side of a cell.
const SIDE_MIN: usize = 768;
const CELL_SIDE_MAX: usize = 16;

/// The colours of land, of the lowest and of the highest surface.
const LAND: [u8; 3] = [200, 184, 138];
const LOW: [f64; 3] = [33.0, 102.0, 172.0];
const HIGH: [f64; 3] = [178.0, 24.0, 43.0];

/// Writes a surface, rows from the south, as PNG.
///
/// # Errors
/// The type that `out` returns.
pub fn write_png(setup: &Setup, surface: &[f64], out: &mut dyn Write) -> io::Result<()> {
    let (rows, columns) = (setup.grid.rows, setup.grid.columns);
    let dots = (SIDE_MIN / rows.max(columns)).clamp(1, CELL_SIDE_MAX);
    let wet = |row: usize, column: usize| setup.depth(row, column) > 0.0;
    let cells = || (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)));
    let heights: Vec<f64> = cells()
        .zip(surface)
        .filter(|((row, column), _)| wet(*row, *column))
        .map(|(_, height)| *height)
        .collect();
    let mean = heights.iter().sum::<f64>() / heights.len().max(1) as f64;
    let most = heights.iter().map(|height| (height - mean).abs()).fold(0.0, f64::max);
    // Deviations below a picometre are rounding.
    let scale = if most > 1e-12 { 1.0 / most } else { 0.0 };
    let mut image = Vec::with_capacity(rows * columns * dots * dots * 3);
    for row in (0..rows).rev() {
        let line: Vec<u8> = (0..columns)
            .flat_map(|column| {
                let part = (surface[row * columns + column] - mean) * scale;
                std::iter::repeat_n(if wet(row, column) { colour(part) } else { LAND }, dots)
            })
            .flatten()
            .collect();
        (0..dots).for_each(|_| image.extend_from_slice(&line));
    }
    let mut encoder = png::Encoder::new(out, (columns * dots) as u32, (rows * dots) as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(&image).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}

/// Returns the colour of a deviation from -1 to 1.
fn colour(part: f64) -> [u8; 3] {
    let full = if part < 0.0 { LOW } else { HIGH };
    full.map(|full| (255.0 + part.abs().min(1.0) * (full - 255.0)) as u8)
}
