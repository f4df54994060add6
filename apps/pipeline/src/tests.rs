//! Stages against simpler computations, and the whole pipeline against the known scene.

use crate::image::{Image, Pair};
use crate::scene::{Background, PAIR_SHIFT, Scene};
use crate::sequential;
use crate::stereo::{UNKNOWN, bad_pixels, census_of, enhanced, filled, matched, rectified};
use proptest::prelude::*;

fn scene(objects: usize) -> Scene {
    Scene { width: 192, height: 128, disparities: 24, objects, seed: 5, background: Background::Wall }
}

#[test]
fn disparities_are_those_that_the_scene_was_made_with() {
    let scene = scene(2);
    for frame in [1, 9] {
        let map = filled(&matched(&census_of(&scene.capture(frame, 0)), scene.disparities));
        let bad = bad_pixels(&map, &scene.truth(frame));
        assert!(bad < 0.05, "{bad}");
    }
}

#[test]
fn objects_are_followed_where_the_scene_moves_them() {
    let scene = scene(2);
    let mut last = Vec::new();
    sequential::frames(&scene, 20, |_, objects| last = objects.to_vec());
    let squares = scene.squares(19);
    assert_eq!(last.len(), squares.len(), "{last:?}, {squares:?}");
    for square in squares {
        let half = square.side as isize / 2;
        let (x, y) = (square.x + half, square.y + half);
        let near = last
            .iter()
            .find(|object| (object.1 as isize - x).abs() <= 8 && (object.2 as isize - y).abs() <= 8);
        let (_, _, _, disparity) = near.unwrap_or_else(|| panic!("nothing near ({x}, {y}): {last:?}"));
        assert!((disparity / 16).abs_diff(square.disparity as i32) <= 3, "{last:?}, {square:?}");
    }
}

#[test]
fn a_right_image_that_is_mounted_higher_is_moved_back() {
    let pair = scene(1).capture(0, 0);
    let lower =
        Image::of(pair.right.width, pair.right.height, |x, y| pair.right.at(x as isize, y as isize - 2));
    let moved = rectified(Pair { right: lower, ..pair.clone() });
    let differing =
        moved.right.pixels.iter().zip(&pair.right.pixels).filter(|(one, other)| one != other).count();
    assert!(differing <= 2 * pair.right.width, "{differing} pixels differ");
}

proptest! {
    #[test]
    fn squares_move_within_the_images_of_both_pairs_whatever_their_sides(
        (width, height) in (128_usize..=4_096, 64_usize..=4_096),
        objects in 1_usize..=8,
        frame in 1_u64..10_000,
        seed in any::<u64>(),
    ) {
        let scene = Scene { width, height, objects, seed, ..scene(objects) };
        let squares = scene.squares(frame);
        prop_assert_eq!(squares.len(), objects);
        for square in squares {
            let right_most = square.x as usize + square.side + PAIR_SHIFT;
            let is_seen = square.x >= scene.disparities as isize && right_most <= width;
            prop_assert!(is_seen, "{square:?} in {width} columns");
        }
    }

    #[test]
    fn contrast_is_stretched_and_the_order_of_brightness_kept(pixels in prop::collection::vec(60_u8..120, 400)) {
        let image = Image { width: 20, height: 20, pixels };
        let stretched = enhanced(&image);
        for (one, other) in image.pixels.iter().zip(&stretched.pixels) {
            for (dark, stretched_dark) in image.pixels.iter().zip(&stretched.pixels) {
                prop_assert!(dark > one || stretched_dark <= other);
            }
        }
    }

    #[test]
    fn a_shift_of_all_pixels_is_the_disparity_of_all(shift in 0_usize..10, seed in any::<u64>()) {
        let scene = Scene { objects: 0, seed, ..scene(0) };
        let left = scene.capture(0, 0).left;
        let right = Image::of(left.width, left.height, |x, y| left.at((x + shift) as isize, y as isize));
        let map = matched(&census_of(&Pair { left, right }), 16);
        let inside = (8..120).flat_map(|y| map.row(y)[24..160].to_vec());
        let other = inside.filter(|value| usize::from(*value) != shift && *value != UNKNOWN).count();
        prop_assert_eq!(other, 0);
    }
}
