//! Images: bytes in rows.

use serde::{Deserialize, Serialize};

/// An image of one byte a pixel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    /// Row by row.
    #[serde(with = "isles::plain")]
    pub pixels: Vec<u8>,
}

impl Image {
    /// Creates an image whose pixel at (x, y) is `pixel(x, y)`.
    pub fn of(width: usize, height: usize, mut pixel: impl FnMut(usize, usize) -> u8) -> Image {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels = places.map(|(x, y)| pixel(x, y)).collect();
        Image { width, height, pixels }
    }

    /// Returns the pixel at (x, y); outside, that of the nearest edge.
    pub fn at(&self, x: isize, y: isize) -> u8 {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        self.pixels[y * self.width + x]
    }

    /// Returns a row.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..(y + 1) * self.width]
    }
}

/// The images of the two cameras of a pair, taken at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub left: Image,
    pub right: Image,
}

impl Pair {
    /// Applies `change` to both images.
    pub fn map(&self, change: impl Fn(&Image) -> Image) -> Pair {
        Pair { left: change(&self.left), right: change(&self.right) }
    }
}
