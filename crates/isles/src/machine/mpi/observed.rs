//! Counters of a run for observers: ranks that share memory with rank 0 count in its memory.
//!
//! The ranks agree on this before the run, so the run sends no message for its observers. A rank of another host is not
//! observed, and rank 0 reports that. Invariant: all ranks make the same collective calls, whether they can join or
//! not.

use crate::print::notice;
use isles_transport_mpi::Library;
use isles_transport_shm::SharedWords;

/// Answer of a rank that counts in the memory of rank 0; [`IS_UNSEEN`] is the answer of one that does not.
const COUNTS: [u8; 1] = [1];
const IS_UNSEEN: [u8; 1] = [0];

/// Offers the words of this rank, rank 0, to the others, and reports on standard error which of them cannot join.
/// `hosts[rank]` is the first rank that shares memory with that rank.
pub(super) fn offer(library: &Library, hosts: &[u32], words: &SharedWords) {
    library.gather_all(&to_bytes(std::process::id(), words.descriptor()));
    let joined = library.gather_all(&COUNTS);
    let unseen: Vec<usize> = (0..hosts.len()).filter(|rank| joined[*rank] != COUNTS).collect();
    if let Some(warning) = unseen_warning(&unseen) {
        notice(format_args!("{warning}"));
    }
}

/// Joins the words of rank 0; `None` if this rank shares no memory with it.
pub(super) fn join(library: &Library, hosts: &[u32]) -> Option<SharedWords> {
    let said = library.gather_all(&to_bytes(0, -1));
    let (process, descriptor) = of_bytes(&said[0]);
    let shares = hosts[library.rank() as usize] == hosts[0];
    let words = shares.then(|| SharedWords::join_sibling(process, descriptor).ok()).flatten();
    library.gather_all(if words.is_some() { &COUNTS } else { &IS_UNSEEN });
    words
}

/// Returns the description of each rank's host for observers, or `None` if all ranks are on one.
///
/// Ranks that share no memory with the first are described as not seen.
pub(super) fn host_of(hosts: &[u32]) -> Option<Vec<String>> {
    let name = |host: &u32| match *host {
        0 => "host of rank 0".to_owned(),
        host => format!("host of rank {host}, not seen"),
    };
    hosts.iter().any(|host| *host != 0).then(|| hosts.iter().map(name).collect())
}

fn to_bytes(process: u32, descriptor: i32) -> [u8; 8] {
    (u64::from(process) << 32 | u64::from(descriptor as u32)).to_le_bytes()
}

/// Decodes the bytes of [`to_bytes`].
fn of_bytes(bytes: &[u8]) -> (u32, i32) {
    let word = u64::from_le_bytes(bytes.try_into().expect("ranks of one library say as many bytes"));
    ((word >> 32) as u32, word as u32 as i32)
}

/// Returns the warning about places that observers do not see; `None` if they see all.
fn unseen_warning(unseen: &[usize]) -> Option<String> {
    let (last, others) = unseen.split_last()?;
    let others: Vec<String> = others.iter().map(usize::to_string).collect();
    let places = match others.as_slice() {
        [] => format!("place {last} is"),
        others => format!("places {} and {last} are", others.join(", ")),
    };
    Some(format!(
        "isles: {places} missing from the recording and the page: only ranks that share memory with rank \
         0 are seen"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_rank_says_is_read_as_it_was_said() {
        for said in [(0, -1), (u32::MAX, i32::MAX), (12_345, 7)] {
            assert_eq!(of_bytes(&to_bytes(said.0, said.1)), said);
        }
    }

    #[test]
    fn hosts_are_told_where_there_are_several() {
        assert_eq!(host_of(&[0, 0, 0]), None);
        let names = host_of(&[0, 0, 2]).unwrap();
        assert_eq!(names, ["host of rank 0", "host of rank 0", "host of rank 2, not seen"]);
    }

    #[test]
    fn places_that_are_not_seen_are_named() {
        assert_eq!(unseen_warning(&[]), None);
        let one = unseen_warning(&[2]).unwrap();
        assert!(one.starts_with("isles: place 2 is missing in what is recorded"), "{one}");
        let several = unseen_warning(&[1, 2, 5]).unwrap();
        assert!(several.starts_with("isles: places 1, 2 and 5 are missing"), "{several}");
    }
}
