//! Arguments of `isles bare run`: the cores, the image of each, and the arguments of the image.

use crate::Failure;
use bare_map::{CORES, PROGRAMS_MAX};
use std::path::PathBuf;
use std::time::Duration;

/// A program: its cores in the order of ranks, its image, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreProgram {
    /// Cores in the order of ranks.
    pub cores: Vec<usize>,
    /// The image.
    pub image: PathBuf,
    /// Arguments after the image's name.
    pub arguments: Vec<String>,
}

/// A run of one or several programs at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The programs, on disjoint sets of cores.
    pub programs: Vec<CoreProgram>,
    /// Rate of the tiles in MHz.
    pub tile_mhz: u32,
    /// Rate of the mesh in MHz.
    pub mesh_mhz: u32,
    /// Time limit after which the run is ended.
    pub limit: Option<Duration>,
    /// True if the boot time of each core is printed.
    pub times: bool,
}

/// Parses the words after `run`; `read` reads a table.
///
/// # Errors
/// One line about the first invalid word.
pub fn parse(words: &[String], read: impl Fn(&str) -> std::io::Result<String>) -> Result<Run, Failure> {
    let mut run = Run { programs: Vec::new(), tile_mhz: 533, mesh_mhz: 800, limit: None, times: false };
    let (mut cores, mut table, mut rest) = (None, None, words.iter());
    let mut image = Vec::new();
    while let Some(word) = rest.next() {
        let (flag, inline) =
            word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        let mut value = || {
            let next = inline.or_else(|| rest.next().map(String::as_str));
            next.ok_or_else(|| usage(format!("{flag} needs a value")))
        };
        match flag {
            "--cores" => cores = Some(list("--cores", value()?)?),
            "--table" => table = Some(value()?.to_string()),
            "--tile" => run.tile_mhz = number(flag, value()?, 1..=65535)?,
            "--mesh" => run.mesh_mhz = number(flag, value()?, 1..=65535)?,
            "--limit" => run.limit = Some(Duration::from_secs(number(flag, value()?, 1..=86400)?.into())),
            "--times" => run.times = true,
            "--" => image.extend(rest.by_ref().cloned()),
            _ if flag.starts_with('-') => {
                return Err(usage(format!("unknown option {flag}; see isles bare run --help")));
            }
            _ => image.extend([word.clone()].into_iter().chain(rest.by_ref().cloned())),
        }
    }
    run.programs = match (cores, table, image.split_first()) {
        (Some(cores), None, Some((image, arguments))) => {
            vec![CoreProgram { cores, image: image.into(), arguments: arguments.to_vec() }]
        }
        (None, Some(file), None) => {
            let text = read(&file).map_err(|cause| usage(format!("--table {file}: {cause}")))?;
            programs(&file, &text)?
        }
        (Some(_), None, None) => {
            return Err(usage("no image; put it after --: isles bare run --cores 0,1 -- IMAGE"));
        }
        (None, None, _) => return Err(usage("no cores; give --cores 0,1 -- IMAGE, or --table FILE")),
        _ => return Err(usage("--table names cores and images; it takes neither --cores nor an image")),
    };
    check(&run.programs)?;
    Ok(run)
}

/// Reads the programs of a table.
fn programs(file: &str, text: &str) -> Result<Vec<CoreProgram>, Failure> {
    let mut programs = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().map(String::from);
        let Some(cores) = words.next() else { continue };
        let place = format!("{file}, line {number}");
        let image =
            words.next().ok_or_else(|| usage(format!("{place}: no image after the cores {cores}")))?;
        programs.push(CoreProgram {
            cores: list(&place, &cores)?,
            image: image.into(),
            arguments: words.collect(),
        });
    }
    if programs.is_empty() {
        return Err(usage(format!("{file}: no program; a line is: LIST IMAGE [ARGUMENT]...")));
    }
    Ok(programs)
}

/// Refuses programs that exceed the chip.
fn check(programs: &[CoreProgram]) -> Result<(), Failure> {
    if programs.len() > PROGRAMS_MAX {
        return Err(usage(format!("{} programs at once; allowed: at most {PROGRAMS_MAX}", programs.len())));
    }
    let mut taken = [false; CORES];
    for core in programs.iter().flat_map(|program| &program.cores) {
        if std::mem::replace(&mut taken[*core], true) {
            return Err(usage(format!("core {core} is named twice; a core runs one image")));
        }
    }
    for program in programs {
        let bytes: usize = program.arguments.iter().map(|word| word.len() + 1).sum();
        let allowed = bare_map::program::ARGUMENT_TEXT_BYTES - 256;
        if bytes > allowed {
            return Err(usage(format!("arguments of {bytes} bytes; allowed: at most {allowed}")));
        }
    }
    Ok(())
}

/// Parses a list of cores such as `0,1,5` or `0-7`.
fn list(source: &str, text: &str) -> Result<Vec<usize>, Failure> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let core = |text: &str| {
            let core = text.parse::<usize>().ok().filter(|core| *core < CORES);
            core.ok_or_else(|| {
                usage(format!("{source}: no core {text:?}; the chip has cores 0 to {}", CORES - 1))
            })
        };
        let (first, last) = (core(first)?, core(last)?);
        if first > last {
            return Err(usage(format!("{source}: {part} is not a range; write {last}-{first}")));
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

fn number(flag: &str, text: &str, allowed: std::ops::RangeInclusive<u32>) -> Result<u32, Failure> {
    let value = text.parse().ok().filter(|value| allowed.contains(value));
    value.ok_or_else(|| usage(format!("{flag} {text}; allowed: {} to {}", allowed.start(), allowed.end())))
}

fn usage(line: impl Into<String>) -> Failure {
    Failure::Usage(line.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str, table: &str) -> Result<Run, String> {
        let words: Vec<String> = words.split(' ').map(String::from).collect();
        parse(&words, |_| Ok(table.to_string())).map_err(|failure| match failure {
            Failure::Usage(line) => line,
            Failure::Run => String::new(),
        })
    }

    #[test]
    fn cores_are_ranks_in_the_order_of_the_list() {
        let run = read("--cores 47,0-2,5 --tile=800 -- a.img --cores x", "").unwrap();
        assert_eq!(run.programs[0].cores, [47, 0, 1, 2, 5]);
        assert_eq!((run.programs[0].arguments.join(" "), run.tile_mhz), (String::from("--cores x"), 800));
    }

    #[test]
    fn a_table_has_several_programs() {
        let run = read("--table t", "# two\n0,1 a.img 7\n\n 4-5 b.img # last\n").unwrap();
        let [first, second] = &run.programs[..] else { panic!("{run:?}") };
        assert_eq!((&first.cores[..], &first.arguments[..]), (&[0, 1][..], &[String::from("7")][..]));
        assert_eq!((&second.cores[..], second.image.to_str()), (&[4, 5][..], Some("b.img")));
    }

    #[test]
    fn what_the_chip_cannot_do_is_one_line() {
        for (words, table, expected) in [
            ("--cores 0,48 -- a", "", "--cores: no core \"48\"; the chip has cores 0 to 47"),
            ("--cores x -- a", "", "--cores: no core \"x\"; the chip has cores 0 to 47"),
            ("--cores 0,1,0 -- a", "", "core 0 is named twice; a core runs one image"),
            ("--cores 7-3 -- a", "", "--cores: 7-3 is not a range; write 3-7"),
            ("--cores 0", "", "no image; put it after --: isles bare run --cores 0,1 -- IMAGE"),
            ("-- a", "", "no cores; give --cores 0,1 -- IMAGE, or --table FILE"),
            ("--tile 0 --cores 0 -- a", "", "--tile 0; allowed: 1 to 65535"),
            ("--table t", "0 a.img\n1\n", "t, line 2: no image after the cores 1"),
            ("--table t", "0 a.img\n0 b.img\n", "core 0 is named twice; a core runs one image"),
            ("--table t", "\n", "t: no program; a line is: LIST IMAGE [ARGUMENT]..."),
            ("--frob --cores 0 -- a", "", "unknown option --frob; see isles bare run --help"),
        ] {
            assert_eq!(read(words, table).unwrap_err(), expected);
        }
    }
}
