//! The picture of a result: disparities as brightness, objects as frames around them.

use crate::image::Image;
use crate::objects::Object;
use std::io::{self, Write};

/// Half of the side of the frame around an object.
const HALF_FRAME: i32 = 14;

/// Writes disparities as PNG, nearer ones brighter, and the objects as coloured frames.
///
/// # Errors
/// The type that `out` returns.
pub fn write_png(map: &Image, objects: &[Object], out: &mut dyn Write) -> io::Result<()> {
    let most = map.pixels.iter().copied().max().unwrap_or(0).max(1);
    let grey = |pixel: &u8| [(u32::from(*pixel) * 255 / u32::from(most)) as u8; 3];
    let mut dots: Vec<[u8; 3]> = map.pixels.iter().map(grey).collect();
    for object in objects {
        let colour =
            [[255, 80, 80], [80, 220, 80], [100, 140, 255], [255, 210, 60]][object.number as usize % 4];
        for along in -HALF_FRAME..=HALF_FRAME {
            for (dx, dy) in
                [(along, -HALF_FRAME), (along, HALF_FRAME), (-HALF_FRAME, along), (HALF_FRAME, along)]
            {
                let (x, y) = (object.x + dx, object.y + dy);
                if (0..map.width as i32).contains(&x) && (0..map.height as i32).contains(&y) {
                    dots[y as usize * map.width + x as usize] = colour;
                }
            }
        }
    }
    let mut encoder = png::Encoder::new(out, map.width as u32, map.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(dots.as_flattened()).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}
