//! Creating and attaching: refusals and their texts.

use super::*;

fn create(places: u32) -> Segment {
    Segment::create(Geometry::for_places(places), *b"the same program").unwrap()
}

fn attach(segment: &Segment, image: &Image) -> Result<Segment, SegmentError> {
    Segment::attach(segment.file().try_clone_to_owned().unwrap(), *image)
}

/// Attaches to a copy of the first page of a segment in a file of its own, modified by `spoil`.
fn forged(seals: SealFlags, bytes: u64, spoil: impl FnOnce(&mut [u8])) -> Result<Segment, SegmentError> {
    let genuine = create(2);
    let mut page = vec![0; PAGE_BYTES as usize];
    rustix::io::pread(genuine.file(), &mut page, 0).unwrap();
    spoil(&mut page);
    let file = fs::memfd_create("forged", fs::MemfdFlags::ALLOW_SEALING).unwrap();
    page.truncate(bytes as usize);
    rustix::io::pwrite(&file, &page, 0).unwrap();
    fs::ftruncate(&file, bytes).unwrap();
    fs::fcntl_add_seals(&file, seals).unwrap();
    Segment::attach(file, *b"the same program")
}

fn sealed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

fn total() -> u64 {
    Layout::of(Geometry::for_places(2)).total_bytes
}

#[test]
fn an_attached_segment_is_the_same_memory() {
    let segment = create(2);
    let other = attach(&segment, b"the same program").unwrap();
    let ours = segment.endpoint(PlaceId(0)).unwrap();
    let theirs = other.endpoint(PlaceId(1)).unwrap();
    use isles_transport::MappedMemory;
    ours.word(PlaceId(1), 7).unwrap().store(42, Ordering::Relaxed);
    assert_eq!(theirs.word(PlaceId(1), 7).unwrap().load(Ordering::Relaxed), 42);
    assert_eq!((other.places(), other.fencing()), (2, segment.fencing()));
}

#[test]
fn another_image_is_refused_and_both_are_named() {
    let error = attach(&create(2), b"another program!").unwrap_err().to_string();
    let hex = |image: &Image| format!("{:032x}", u128::from_be_bytes(*image));
    assert!(
        error.contains(&hex(b"the same program")) && error.contains(&hex(b"another program!")),
        "{error}"
    );
}

#[test]
fn another_version_is_refused_and_both_are_named() {
    let error = forged(sealed(), total(), |page| page[8] = 77).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the segment has layout version 77; this program has version {VERSION}")
    );
}

#[test]
fn a_file_that_is_no_segment_is_refused() {
    let refuse = |answer: Result<Segment, SegmentError>| answer.unwrap_err().to_string();
    let genuine = |_: &mut [u8]| ();
    assert!(forged(sealed(), total(), genuine).is_ok(), "the forgery is perfect");
    assert_eq!(
        refuse(forged(SealFlags::SEAL, total(), genuine)),
        "not a segment: the memory file is not sealed"
    );
    let short = refuse(forged(sealed(), 100, genuine));
    assert_eq!(short, "not a segment: the memory file is shorter than its header");
    let magic = refuse(forged(sealed(), total(), |page| page[0] ^= 1));
    assert_eq!(magic, "not a segment: the first word is different");
    let sizes = refuse(forged(sealed(), total() - PAGE_BYTES, genuine));
    assert_eq!(sizes, "not a segment: the sizes in the header do not match the file");
    let places = refuse(forged(sealed(), total(), |page| page[12..16].fill(0xFF)));
    assert_eq!(places, "no segment of these sizes: the number of places must be 1 to 256");
    let null = std::fs::File::open("/dev/null").unwrap();
    let null = refuse(Segment::attach(null.into(), [0; 16]));
    assert_eq!(null, "not a segment: the descriptor is not a sealed memory file");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let good = Geometry::for_places(2);
    let bad = [
        Geometry { places: 0, ..good },
        Geometry { places: 257, ..good },
        Geometry { control_bytes: 5000, ..good },
        Geometry { data_bytes: 2048, ..good },
        Geometry { data_bytes: 1 << 30, ..good },
        Geometry { arena_bytes: 0, ..good },
        Geometry { arena_bytes: 4096, ..good },
        Geometry { arena_bytes: 1 << 60, ..good },
    ];
    for geometry in bad {
        let answer = Segment::create(geometry, [0; 16]);
        assert!(matches!(answer, Err(SegmentError::BadGeometry(_))), "{geometry:?}");
    }
}

#[test]
fn a_segment_is_not_in_any_file_system() {
    let segment = create(2);
    let link =
        std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&segment.file())));
    assert_eq!(link.unwrap().to_str(), Some("/memfd:isles (deleted)"));
}

#[test]
fn a_place_that_settles_stays_free_to_leave() {
    let segment = create(2);
    assert_eq!(segment.home(PlaceId(1)), None, "nothing is kept unless somebody asks");
    let allowed = pinning::allowed();
    let list = vec![*allowed.last().unwrap(), allowed[0]];
    segment.keep_processors(&Pinning::Processors(list.clone()));
    for (place, processor) in segment.all_places().zip(list) {
        assert_eq!(segment.home(place), Some(processor));
        segment.settle(place);
        assert_eq!(pinning::allowed(), allowed);
    }
}
