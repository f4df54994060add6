//! The real images: the Motorcycle pair of the Middlebury stereo data (2014), from the Python package scikit-image,
//! with disparities measured by structured light.
//!
//! D. Scharstein et al., "High-Resolution Stereo Datasets with Subpixel-Accurate Ground Truth" (GCPR 2014).

use crate::image::{Image, Pair};
use crate::scene::Background;
use flate2::read::DeflateDecoder;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

/// The files of the package's folder `skimage/data`.
pub const FILES: [&str; 3] = ["motorcycle_left.png", "motorcycle_right.png", "motorcycle_disp.npz"];

/// Largest accepted file, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Reads the images and the measured disparities in `folder`.
///
/// # Errors
/// A line that names the file and its error.
pub fn read(folder: &Path) -> Result<Background, String> {
    let path = |index: usize| folder.join(FILES[index]);
    let pair = Pair { left: grey_image(&path(0))?, right: grey_image(&path(1))? };
    let (width, height) = (pair.left.width, pair.left.height);
    if (pair.right.width, pair.right.height) != (width, height) {
        return Err(format!("{}: differs in size from {}", path(1).display(), FILES[0]));
    }
    let file = path(2);
    let truth = measured(&file, width * height).map_err(|fault| format!("{}: {fault}", file.display()))?;
    Ok(Background::Real { pair, truth })
}

/// Reads an image as brightness: (299 red + 587 green + 114 blue) / 1000.
fn grey_image(path: &Path) -> Result<Image, String> {
    let read_error = |fault: &dyn std::fmt::Display| format!("{}: {fault}", path.display());
    let file = fs::File::open(path).map_err(|fault| read_error(&fault))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|fault| read_error(&fault))?;
    let size = reader.output_buffer_size().filter(|size| *size as u64 <= BYTES_MAX);
    let mut bytes = vec![0; size.ok_or_else(|| read_error(&"the image is larger than 64 MiB"))?];
    let info = reader.next_frame(&mut bytes).map_err(|fault| read_error(&fault))?;
    let samples = info.color_type.samples();
    let grey = |pixel: &[u8]| match pixel {
        [red, green, blue, ..] => {
            ((299 * u32::from(*red) + 587 * u32::from(*green) + 114 * u32::from(*blue)) / 1000) as u8
        }
        pixel => pixel[0],
    };
    let pixels = bytes[..info.buffer_size()].chunks_exact(samples).map(grey).collect();
    Ok(Image { width: info.width as usize, height: info.height as usize, pixels })
}

/// Reads the disparities from the first array of a compressed NumPy file, in sixteenths; 0 where none was measured.
fn measured(path: &Path, count: usize) -> Result<Vec<u16>, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|fault| fault.to_string())?;
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|fault| fault.to_string())?;
    let array = unzipped(&bytes).ok_or("not a NumPy archive of one compressed array")?;
    let values = floats(&array).ok_or("not a NumPy array of 32-bit floats, little-endian and in rows")?;
    if values.len() != count {
        return Err(format!("{} disparities, but the images have {count} pixels", values.len()));
    }
    let sixteenths =
        |value: f32| if value.is_finite() { (value * 16.0).round().clamp(0.0, 65535.0) as u16 } else { 0 };
    Ok(values.into_iter().map(sixteenths).collect())
}

/// Returns the contents of the first file of a ZIP archive (local header: APPNOTE.TXT, section 4.3.7).
fn unzipped(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.get(..4)? != b"PK\x03\x04" {
        return None;
    }
    let contents = bytes.get(30 + number(26)? + number(28)?..)?;
    let mut plain = Vec::new();
    match number(8)? {
        8 => DeflateDecoder::new(contents).take(BYTES_MAX).read_to_end(&mut plain).ok()?,
        _ => return None,
    };
    Some(plain)
}

/// Returns the elements of an array of 32-bit floats (NumPy format, version 1).
fn floats(array: &[u8]) -> Option<Vec<f32>> {
    let header_len = usize::from(u16::from_le_bytes(array.get(8..10)?.try_into().ok()?));
    let header = std::str::from_utf8(array.get(10..10 + header_len)?).ok()?;
    let is_known = array.starts_with(b"\x93NUMPY\x01")
        && header.contains("'<f4'")
        && header.contains("'fortran_order': False");
    let elements = array.get(10 + header_len..).filter(|_| is_known)?;
    Some(
        elements
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect(),
    )
}
