//! The field as an image: a generation as PNG, or several as GIF.
//!
//! A picture shows the part of the field with living cells and a margin, at the largest scale that fits: each cell of
//! a small pattern in a large field is a square of dots. A large part is reduced; a dot is set if any of its cells
//! lives. Invariant: all pictures of a GIF show the same part.

use std::io::{self, Write};
use std::ops::Range;

/// Most dots per side of a GIF, and of a PNG.
const GIF_SIDE: usize = 512;
const PNG_SIDE: usize = 16_384;

/// Side in dots up to which cells are magnified, and largest side of a cell.
const SIDE_MIN: usize = 512;
const CELL_SIDE_MAX: usize = 16;

/// Cells shown around the living ones.
const MARGIN: usize = 8;

/// Hundredths of a second between two pictures of a GIF.
const DELAY: u16 = 10;

/// A generation of a field, packed eight cells per byte.
pub struct Cells<'a> {
    pub columns: usize,
    pub rows: usize,
    pub packed: &'a [u8],
}

impl Cells<'_> {
    /// Calls `visit` with row and column of each living cell.
    fn for_living(&self, mut visit: impl FnMut(usize, usize)) {
        for (index, byte) in self.packed.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for bit in (0..8).filter(|bit| byte >> (7 - bit) & 1 == 1) {
                let cell = 8 * index + bit;
                visit(cell / self.columns, cell % self.columns);
            }
        }
    }
}

/// Part of a field that is shown, and its scale.
struct Crop {
    rows: Range<usize>,
    columns: Range<usize>,
    /// Side of a cell in dots, and side of a dot in cells; one of them is 1.
    dots: usize,
    cells: usize,
}

impl Crop {
    /// Returns a crop of these generations whose sides have at most `side_max` dots.
    fn of(generations: &[Cells<'_>], side_max: usize) -> Crop {
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        for cells in generations {
            rows.resize(cells.rows, false);
            columns.resize(cells.columns, false);
            cells.for_living(|row, column| (rows[row], columns[column]) = (true, true));
        }
        let (rows, columns) = (around(&rows), around(&columns));
        let side = rows.len().max(columns.len()).max(1);
        let dots = (SIDE_MIN.min(side_max) / side).clamp(1, CELL_SIDE_MAX);
        Crop { rows, columns, dots, cells: side.div_ceil(side_max) }
    }

    /// Returns width and height in dots.
    fn size(&self) -> (usize, usize) {
        let side = |cells: &Range<usize>| cells.len().div_ceil(self.cells) * self.dots;
        (side(&self.columns), side(&self.rows))
    }

    /// Returns a byte for each dot, 1 if it is set.
    fn dots_of(&self, cells: &Cells<'_>) -> Vec<u8> {
        let (width, height) = self.size();
        let mut all = vec![0; width * height];
        cells.for_living(|row, column| {
            if !self.rows.contains(&row) || !self.columns.contains(&column) {
                return;
            }
            let dot = |cell: usize, first: usize| (cell - first) / self.cells * self.dots;
            let (top, left) = (dot(row, self.rows.start), dot(column, self.columns.start));
            for line in top..top + self.dots {
                all[line * width + left..][..self.dots].fill(1);
            }
        });
        all
    }
}

/// Returns the range from the first to the last set element, with a margin; the whole range if nothing is set.
fn around(set: &[bool]) -> Range<usize> {
    let first = set.iter().position(|set| *set);
    let last = set.iter().rposition(|set| *set);
    first.zip(last).map_or(0..set.len(), |(first, last)| {
        first.saturating_sub(MARGIN)..(last + 1 + MARGIN).min(set.len())
    })
}

fn other(cause: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(cause)
}

/// Writes a generation as PNG, living cells black.
///
/// # Errors
/// Errors of `out`.
pub fn write_png(cells: &Cells<'_>, out: &mut dyn Write) -> io::Result<()> {
    let crop = Crop::of(std::slice::from_ref(cells), PNG_SIDE);
    let ((width, height), dots) = (crop.size(), crop.dots_of(cells));
    let mut encoder = png::Encoder::new(out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().map_err(other)?;
    let lines = dots.chunks(width).flat_map(|line| {
        line.chunks(8)
            .map(|dots| !dots.iter().enumerate().fold(0, |byte, (bit, dot)| byte | dot << (7 - bit)))
    });
    writer.write_image_data(&lines.collect::<Vec<u8>>()).map_err(other)?;
    writer.finish().map_err(other)
}

/// Writes generations as a GIF that repeats forever.
///
/// # Errors
/// Errors of `out`.
pub fn write_gif(frames: &[Cells<'_>], out: &mut dyn Write) -> io::Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let crop = Crop::of(frames, GIF_SIDE);
    let (width, height) = crop.size();
    let colors = [255, 255, 255, 0, 0, 0];
    let mut encoder = gif::Encoder::new(out, width as u16, height as u16, &colors).map_err(other)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(other)?;
    for cells in frames {
        let dots = crop.dots_of(cells);
        let mut frame = gif::Frame::from_indexed_pixels(width as u16, height as u16, dots, None);
        frame.delay = DELAY;
        encoder.write_frame(&frame).map_err(other)?;
    }
    Ok(())
}
