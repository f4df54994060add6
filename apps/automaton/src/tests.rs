//! Generations against populations that another program found, patterns and rules that are read or refused, strips that
//! come to what the whole field does.

use crate::pattern::{self, BUILT_IN, Pattern};
use crate::rule::Rule;
use crate::strip::{Field, Start, Strip, Sums};
use proptest::prelude::*;

fn field(name: &str, rows: usize, columns: usize) -> Field {
    let text = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap().1;
    let (pattern, rule) = pattern::read(text).unwrap();
    Field { columns, rows, rule: rule.unwrap(), start: Start::Pattern(pattern) }
}

/// One step of strips that are cut at `cuts`.
fn step(strips: &mut [Strip]) {
    let edges: Vec<_> =
        strips.iter().map(|strip| (strip.row(1).to_vec(), strip.row(strip.rows()).to_vec())).collect();
    let size = strips.len();
    for (index, strip) in strips.iter_mut().enumerate() {
        let rows = strip.rows();
        strip.row_mut(0).copy_from_slice(&edges[(index + size - 1) % size].1);
        strip.row_mut(rows + 1).copy_from_slice(&edges[(index + 1) % size].0);
        strip.split().2.advance();
        strip.finish();
    }
}

fn sums(strips: &[Strip]) -> Sums {
    strips.iter().map(Strip::sums).fold(Sums::default(), Sums::plus)
}

/// The populations are those of `bgolly` 3.3 (Debian 12) on a plane without edges, which these do not reach.
#[test]
fn patterns_have_the_populations_of_golly() {
    for (name, (rows, columns), populations) in [
        ("glider", (64, 64), [(0, 5), (100, 5)].as_slice()),
        ("gosper-gun", (400, 400), &[(0, 36), (600, 136)]),
        ("breeder", (416, 800), &[(0, 4060), (60, 4271)]),
    ] {
        let mut strips = [Strip::new(&field(name, rows, columns), 0..rows)];
        let mut generation = 0;
        for (at, population) in populations {
            while generation < *at {
                step(&mut strips);
                generation += 1;
            }
            assert_eq!(sums(&strips).population, *population, "{name} at {at}");
        }
    }
}

/// A field by the definition: each cell by its eight neighbours.
fn by_definition(cells: &[Vec<bool>], rule: Rule) -> Vec<Vec<bool>> {
    let (rows, columns) = (cells.len(), cells[0].len());
    let neighbors = |row: usize, column: usize| {
        let around = (0..9).filter(|step| *step != 4).map(|step| {
            cells[(row + rows + step / 3 - 1) % rows][(column + columns + step % 3 - 1) % columns]
        });
        around.filter(|lives| *lives).count()
    };
    let row = |row: usize| {
        (0..columns).map(|column| rule.next(cells[row][column], neighbors(row, column))).collect()
    };
    (0..rows).map(row).collect()
}

/// A rule with the digits that are bits of two numbers.
fn rule_text(births: u32, survivals: u32) -> String {
    let digits = |bits: u32| -> String {
        (0..9).filter(|bit| bits >> bit & 1 == 1).map(|bit| bit.to_string()).collect()
    };
    format!("B{}/S{}", digits(births), digits(survivals))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Strips of any heights come to what the definition says, with the sums of the whole field.
    #[test]
    fn strips_are_what_the_definition_says(
        seed in any::<u64>(),
        heights in prop::collection::vec(1_usize..4, 1..5),
        words in 1_usize..4,
        births in 0_u32..512,
        survivals in 0_u32..512,
    ) {
        let rule: Rule = rule_text(births, survivals).parse().unwrap();
        let (rows, columns) = (heights.iter().sum::<usize>(), 8 * words);
        let field = Field { columns, rows, rule, start: Start::Random(seed) };
        let mut first = 0;
        let mut strips: Vec<Strip> = heights.iter().map(|height| {
            first += height;
            Strip::new(&field, first - height..first)
        }).collect();
        let mut whole = [Strip::new(&field, 0..rows)];
        for _ in 0..3 {
            let own = |strip: &Strip| (1..=strip.rows())
                .map(|row| strip.row(row).iter().map(|cell| *cell == 1).collect::<Vec<_>>())
                .collect::<Vec<_>>();
            let before: Vec<Vec<bool>> = strips.iter().flat_map(own).collect();
            // On a ring of fewer than three rows a neighbour counts twice, as it does in the definition.
            step(&mut strips);
            step(&mut whole);
            let after: Vec<Vec<bool>> = strips.iter().flat_map(own).collect();
            prop_assert_eq!(&after, &by_definition(&before, rule));
            prop_assert_eq!(sums(&strips), sums(&whole));
            let living = after.iter().flatten().filter(|lives| **lives).count() as u64;
            prop_assert_eq!(sums(&strips).population, living);
        }
    }

    /// Any text is read or refused.
    #[test]
    fn no_text_of_a_pattern_panics(text in "[#xy=, 0-9bo$!\nrule/BS3]{0,60}") {
        let _ = pattern::read(&text);
    }

    #[test]
    fn a_rule_is_written_as_it_is_read(births in 0_u32..512, survivals in 0_u32..512) {
        let text = rule_text(births, survivals);
        prop_assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
    }
}

#[test]
fn a_fault_of_a_pattern_names_line_and_column() {
    for (text, expected) in [
        ("", "line 1, column 1: the end of the file; allowed: a line such as"),
        ("#C no head\nbo$2bo$3o!", "line 2, column 1: \"bo$2bo$3o!\"; allowed: a line such as"),
        ("x = 3, y = 0", "line 1, column 8: y is \"0\"; allowed: 1 to 65536"),
        ("x = 3, y = 3, rule = B9/S", "line 1, column 15: the rule \"B9/S\"; allowed: B and S with digits"),
        ("x = 3, y = 3\nbo$2bq$3o!", "line 2, column 6: 'q'; allowed: a number, b, o, $ or !"),
        (
            "x = 3, y = 3\nbo$\n2b2o$",
            "line 3, column 4: a cell in column 4 of row 2; allowed: 3 columns and 3 rows",
        ),
        ("x = 3, y = 1\n$o!", "line 2, column 2: a cell in column 1 of row 2; allowed: 3 columns and 1 rows"),
        ("x = 3, y = 3\n99999o", "line 2, column 5: a run of 99999; allowed: 1 to 65536"),
        ("x = 3, y = 3\nbo", "line 2, column 2: the end of the file; allowed: a `!`"),
    ] {
        let fault = pattern::read(text).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn a_pattern_is_read_by_runs() {
    let (pattern, rule) = pattern::read("#N a\nx = 4,y=3, rule = b36/s23\n2o$$b3o!rest").unwrap();
    assert_eq!(pattern, Pattern { columns: 4, rows: 3, runs: vec![(0, 0, 2), (2, 1, 3)] });
    assert_eq!(rule.map(|rule| rule.to_string()).as_deref(), Some("B36/S23"));
}
