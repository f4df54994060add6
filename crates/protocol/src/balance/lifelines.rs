//! Lifelines: the places that a place asks when random steals have found nothing.
//!
//! The graph is the cyclic hypercube of Saraswat et al., "Lifeline-based global load balancing" (PPoPP 2011), section
//! 4. Invariant: with the number of lifelines that [`dimensions`] returns, every member is reached from every other.

/// Returns the least number of digits that number `members` members in base `base`: X10's z.
///
/// `base` is at least 2. One member needs none.
pub(super) fn dimensions(members: usize, base: usize) -> usize {
    let (mut digits, mut numbers) = (0, 1_usize);
    while numbers < members {
        digits += 1;
        numbers = numbers.saturating_mul(base);
    }
    digits
}

/// Returns the lifelines of member `rank`, of `members`: for each of the first `count` digits in base `base`, the
/// member whose number has that digit one less, cyclically, skipping numbers that no member has.
///
/// A digit in which no other member differs has no lifeline. `rank` is less than `members`, and `base` at least 2.
pub(super) fn lifelines(rank: usize, members: usize, base: usize, count: usize) -> Vec<usize> {
    let mut lifelines = Vec::new();
    let mut weight = 1_usize;
    for _ in 0..count {
        if weight >= members {
            break;
        }
        let digit = rank / weight % base;
        let rest = rank - digit * weight;
        let lower = (1..base).map(|step| (digit + base - step) % base);
        let mut numbers = lower.map(|digit| digit.saturating_mul(weight).saturating_add(rest));
        lifelines.extend(numbers.find(|number| *number < members));
        weight = weight.saturating_mul(base);
    }
    lifelines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of members reached from `first` along lifelines against their direction, as gifts go.
    fn reached(first: usize, members: usize, base: usize) -> usize {
        let count = dimensions(members, base);
        let all: Vec<Vec<usize>> = (0..members).map(|rank| lifelines(rank, members, base, count)).collect();
        let mut is_reached = vec![false; members];
        let mut next = vec![first];
        while let Some(rank) = next.pop() {
            if !std::mem::replace(&mut is_reached[rank], true) {
                next.extend((0..members).filter(|thief| all[*thief].contains(&rank)));
            }
        }
        is_reached.into_iter().filter(|is_reached| *is_reached).count()
    }

    #[test]
    fn lifelines_are_those_of_a_cube_by_hand() {
        // 9 places in base 3: 4 is (1, 1), so one less in either digit is 3 and 1.
        assert_eq!(lifelines(4, 9, 3, 2), [3, 1]);
        assert_eq!(lifelines(0, 9, 3, 2), [2, 6]);
        // 48 places in base 4: 0 counts down to 3, 12 and 48 - 16 = 32, as there is no 48.
        assert_eq!(lifelines(0, 48, 4, 3), [3, 12, 32]);
        assert_eq!(lifelines(47, 48, 4, 3), [46, 43, 31]);
        // 5 places in base 4: 4 alone has a second digit, and no other first one.
        assert_eq!((lifelines(4, 5, 4, 2), lifelines(0, 5, 4, 2)), (vec![0], vec![3, 4]));
        assert_eq!(lifelines(0, 1, 4, 1), []);
        assert_eq!((lifelines(0, 2, 4, 1), lifelines(1, 2, 4, 1)), (vec![1], vec![0]));
    }

    #[test]
    fn the_number_of_digits_is_the_logarithm_rounded_up() {
        let found =
            [(1, 4), (2, 4), (4, 4), (5, 4), (16, 4), (17, 4), (48, 4), (256, 2), (257, 2), (7, 1000)];
        let found = found.map(|(members, base)| dimensions(members, base));
        assert_eq!(found, [0, 1, 1, 2, 2, 3, 3, 8, 9, 1]);
        assert_eq!(dimensions(usize::MAX, 2), usize::BITS as usize);
    }

    #[test]
    fn tasks_of_any_member_reach_all_others() {
        for members in 1..=70 {
            for base in 2..=9 {
                for first in [0, members / 2, members - 1] {
                    assert_eq!(reached(first, members, base), members, "from {first}, base {base}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_lifeline_is_another_member_and_named_once(
            members in 1_usize..2000, base in 2_usize..40, count in 0_usize..12, draw in any::<prop::sample::Index>(),
        ) {
            let rank = draw.index(members);
            let found = lifelines(rank, members, base, count);
            prop_assert!(found.len() <= count.min(dimensions(members, base)));
            for (place, lifeline) in found.iter().enumerate() {
                prop_assert!(*lifeline < members && *lifeline != rank);
                prop_assert!(!found[..place].contains(lifeline));
            }
        }
    }
}
