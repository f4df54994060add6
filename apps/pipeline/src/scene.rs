//! The scene in front of the cameras: a textured background, and textured squares moving in front of it.
//!
//! The second pair of cameras is [`PAIR_SHIFT`] pixels to the right of the first. Every image is a function of the
//! frame number. Invariant: a point at disparity d that the left camera sees at x is at x - d for the right camera.

use crate::image::{Image, Pair};
use serde::{Deserialize, Serialize};

/// Shift to the left of the images of the second pair, in pixels.
pub const PAIR_SHIFT: usize = 8;

/// The disparity of the synthetic background.
const BACKGROUND: usize = 4;

/// The background behind the squares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Background {
    /// A wall with a random texture, at one disparity.
    Wall,
    /// Real images, and the measured disparities (0 where none was measured), in sixteenths of a pixel.
    Real {
        pair: Pair,
        #[serde(with = "isles::plain")]
        truth: Vec<u16>,
    },
}

/// The complete scene.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scene {
    pub width: usize,
    pub height: usize,
    /// Number of disparities searched, from 0.
    pub disparities: usize,
    pub objects: usize,
    pub seed: u64,
    pub background: Background,
}

/// A square, at one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Square {
    /// Its top left corner, in the image of the first left camera.
    pub x: isize,
    pub y: isize,
    pub side: usize,
    pub disparity: usize,
    texture: u64,
}

impl Square {
    fn has(&self, x: isize, y: isize) -> bool {
        (self.x..self.x + self.side as isize).contains(&x)
            && (self.y..self.y + self.side as isize).contains(&y)
    }
}

/// Returns a hash of numbers, used as a texture.
fn hash(seed: u64, x: isize, y: isize) -> u64 {
    let mut bits = seed
        ^ (x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (y as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Returns a texture with grains of two pixels and of one.
fn texture(seed: u64, x: isize, y: isize) -> u8 {
    let coarse = hash(seed, x.div_euclid(2), y.div_euclid(2)) & 0x7f;
    (40 + coarse + (hash(seed ^ 1, x, y) & 0x1f)) as u8
}

impl Scene {
    /// Returns the squares of a frame, the nearest ones last. They move in straight lines and turn back at the edges.
    /// Frame 0 has none, so that it shows the background.
    pub fn squares(&self, frame: u64) -> Vec<Square> {
        if frame == 0 {
            return Vec::new();
        }
        // This leaves room to move at every width of at least twice the disparities.
        let side = (self.height.min(self.width) / 6).max(16);
        let nearest = self.disparities - 2;
        let square = |number: usize| {
            let random = |salt: isize| hash(self.seed, number as isize, salt);
            let rows = self.height / self.objects.max(1);
            let spare = (rows.saturating_sub(side)).max(1) as u64;
            let y = (number * rows) as u64 + random(1) % spare;
            let (first, last) = (nearest as u64 + 2, (self.width - side - PAIR_SHIFT) as u64);
            let range = last.saturating_sub(first).max(1);
            let way = (random(2) % range + frame * (1 + random(3) % 2)) % (2 * range);
            let x = first + way.min(2 * range - way);
            let depth = nearest - number % 3 * (nearest / 6).max(1);
            Square { x: x as isize, y: y as isize, side, disparity: depth, texture: random(4) }
        };
        let mut squares: Vec<Square> = (0..self.objects).map(square).collect();
        squares.sort_by_key(|square| square.disparity);
        squares
    }

    /// Returns the images of a pair of cameras (0 or 1) in a frame.
    pub fn capture(&self, frame: u64, pair: usize) -> Pair {
        let squares = self.squares(frame);
        let shift = (pair * PAIR_SHIFT) as isize;
        let image = |is_right: bool| {
            Image::of(self.width, self.height, |x, y| {
                self.pixel(&squares, frame, shift, is_right, x as isize, y as isize)
            })
        };
        Pair { left: image(false), right: image(true) }
    }

    fn pixel(&self, squares: &[Square], frame: u64, shift: isize, is_right: bool, x: isize, y: isize) -> u8 {
        let seen_at = |disparity: usize| x + shift + if is_right { disparity as isize } else { 0 };
        for square in squares.iter().rev() {
            let source = seen_at(square.disparity);
            if square.has(source, y) {
                return texture(square.texture, source - square.x, y - square.y);
            }
        }
        match &self.background {
            // Each camera has its own noise.
            Background::Wall => {
                let noise = hash(self.seed ^ frame, (x << 2) + isize::from(is_right), y + (shift << 12)) & 3;
                texture(self.seed, seen_at(BACKGROUND), y) + noise as u8
            }
            Background::Real { pair, .. } => {
                if is_right {
                    pair.right.at(x + shift, y)
                } else {
                    pair.left.at(x + shift, y)
                }
            }
        }
    }

    /// Returns the disparity of each pixel of the first left image, in sixteenths of a pixel; 0 if unknown.
    pub fn truth(&self, frame: u64) -> Vec<u16> {
        let squares = self.squares(frame);
        let places = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        places
            .map(|(x, y)| {
                let square = squares.iter().rev().find(|square| square.has(x as isize, y as isize));
                match (square, &self.background) {
                    (Some(square), _) => square.disparity as u16 * 16,
                    (None, Background::Wall) => BACKGROUND as u16 * 16,
                    (None, Background::Real { truth, .. }) => truth[y * self.width + x],
                }
            })
            .collect()
    }
}
