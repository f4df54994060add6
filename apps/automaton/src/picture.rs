//! The field as an image: one of its generations as PNG, several as GIF.
//!
//! A large field is drawn smaller; a dot is set if a cell of those that it stands for lives.

use std::io::{self, Write};

/// Most dots of a side of a GIF, and of a PNG.
const GIF_SIDE: usize = 512;
const PNG_SIDE: usize = 16_384;

/// Hundredths of a second between two pictures of a GIF.
const DELAY: u16 = 10;

/// A generation of a field, eight cells a byte.
pub struct Cells<'a> {
    pub columns: usize,
    pub rows: usize,
    pub packed: &'a [u8],
}

impl Cells<'_> {
    /// Returns width and height, and a byte for each dot, 1 if it is set; no side has more than `side_max`.
    fn dots(&self, side_max: usize) -> (usize, usize, Vec<u8>) {
        let scale = self.columns.max(self.rows).div_ceil(side_max);
        let (width, height) = (self.columns.div_ceil(scale), self.rows.div_ceil(scale));
        let mut dots = vec![0; width * height];
        for (index, byte) in self.packed.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for bit in (0..8).filter(|bit| byte >> (7 - bit) & 1 == 1) {
                let cell = 8 * index + bit;
                let (row, column) = (cell / self.columns, cell % self.columns);
                dots[row / scale * width + column / scale] = 1;
            }
        }
        (width, height, dots)
    }
}

fn other(cause: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(cause)
}

/// Writes a generation as PNG, living cells black.
///
/// # Errors
/// What `out` returns.
pub fn write_png(cells: &Cells<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (width, height, dots) = cells.dots(PNG_SIDE);
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

/// Writes generations as GIF, one after the other, again and again.
///
/// # Errors
/// What `out` returns.
pub fn write_gif(frames: &[Cells<'_>], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = frames.first() else { return Ok(()) };
    let (width, height, _) = first.dots(GIF_SIDE);
    let colors = [255, 255, 255, 0, 0, 0];
    let mut encoder = gif::Encoder::new(out, width as u16, height as u16, &colors).map_err(other)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(other)?;
    for cells in frames {
        let (width, height, dots) = cells.dots(GIF_SIDE);
        let mut frame = gif::Frame::from_indexed_pixels(width as u16, height as u16, dots, None);
        frame.delay = DELAY;
        encoder.write_frame(&frame).map_err(other)?;
    }
    Ok(())
}
