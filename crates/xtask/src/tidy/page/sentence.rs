//! Sentences and paragraphs: a page of the book that tells a user what to do is read in a hurry.
//!
//! Refused: a user page whose sentences have [`WORDS_UNDER`] words or more on average, and a paragraph of any page that
//! has more than [`PARAGRAPH_WORDS_MAX`]. Design notes and decisions are no user pages. Code blocks, tables, headings,
//! pictures and comments do not count; an item of a list is a paragraph. There is a list of exceptions for pages that
//! may only shrink, and none for paragraphs.

use crate::finding::Finding;
use crate::ratchet::{Ratchet, Unit};
use crate::tree::{File, Tree};

/// The mean sentence of a page has less words than this.
const WORDS_UNDER: usize = 20;

/// The most words of a paragraph, or of an item of a list.
const PARAGRAPH_WORDS_MAX: usize = 120;

/// The mean is cut to tenths, so that the list of exceptions can hold it.
const MEAN: Unit = Unit { name: "words a sentence", advice: "shorten its sentences", steps: 10 };

/// The table of contents of the book, which has no sentences.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Folders of `docs/` whose pages are not for users of the product.
const NOT_FOR_USERS: &[&str] = &["docs/design/", "docs/decisions/"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let pages: Vec<&File> = tree.files_ending("md").filter(|file| is_page(&file.path)).collect();
    let mean = |page: &&File| Some((page.path.clone(), (page.path.clone(), 0, mean(page)?)));
    let means = pages.iter().filter(|page| is_user_page(&page.path)).filter_map(mean).collect();
    let mut findings = Ratchet::read_as(tree, "sentences", &MEAN)
        .map_or_else(|finding| vec![finding], |ratchet| ratchet.judge(WORDS_UNDER * MEAN.steps - 1, means));
    findings.extend(pages.into_iter().flat_map(long_paragraphs));
    findings
}

fn is_page(path: &str) -> bool {
    path.starts_with("docs/") && path != CONTENTS
}

fn is_user_page(path: &str) -> bool {
    is_page(path) && !NOT_FOR_USERS.iter().any(|other| path.starts_with(other))
}

/// Words a sentence of `page`, in the steps of [`MEAN`]; `None` if it has no sentence.
fn mean(page: &File) -> Option<usize> {
    let sentences: Vec<usize> = paragraphs(page).iter().flat_map(|(_, text)| sentences(text)).collect();
    (sentences.iter().sum::<usize>() * MEAN.steps).checked_div(sentences.len())
}

/// The paragraphs of `page` that have too many words.
fn long_paragraphs(page: &File) -> Vec<Finding> {
    let finding = |(line, text): (usize, String)| {
        let words: usize = sentences(&text).iter().sum();
        let message = format!(
            "a paragraph of {words} words; at most {PARAGRAPH_WORDS_MAX}: make it a list, or several paragraphs"
        );
        (words > PARAGRAPH_WORDS_MAX).then(|| Finding::new(&page.path, line, message))
    };
    paragraphs(page).into_iter().filter_map(finding).collect()
}

/// The paragraphs and items of lists of a page, each in one line, with the number of its first line.
pub(super) fn paragraphs(page: &File) -> Vec<(usize, String)> {
    let mut paragraphs = vec![(1, String::new())];
    let (mut is_code, mut is_comment) = (false, false);
    for (number, line) in page.lines() {
        let line = line.trim_start_matches(['>', ' ']).trim();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        is_comment |= line.starts_with("<!--") && !is_code;
        let is_apart = line.is_empty() || line.starts_with(['#', '|']) || line.starts_with("![");
        if is_fence || is_code || is_comment || is_apart {
            paragraphs.push((number + 1, String::new()));
            is_comment &= !line.contains("-->");
            continue;
        }
        let (is_item, text) = without_mark(line);
        if is_item {
            paragraphs.push((number, String::new()));
        }
        if let Some((_, paragraph)) = paragraphs.last_mut() {
            *paragraph += text;
            paragraph.push(' ');
        }
    }
    paragraphs
}

/// Returns whether `line` begins an item of a list, and the text after its mark.
fn without_mark(line: &str) -> (bool, &str) {
    let behind_number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_numbered = behind_number.len() < line.len();
    let marks: &[&str] = if is_numbered { &[". ", ") "] } else { &["- ", "* ", "+ "] };
    let item = marks.iter().find_map(|mark| behind_number.strip_prefix(mark));
    (item.is_some(), item.unwrap_or(line))
}

/// The number of words of each sentence of a paragraph.
fn sentences(paragraph: &str) -> Vec<usize> {
    let text = without_targets(&with_code_as_words(paragraph));
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).collect();
    let mut lengths = Vec::new();
    let mut length = 0;
    for (at, word) in words.iter().enumerate() {
        length += 1;
        if ends_sentence(word, words.get(at + 1).copied()) {
            lengths.push(length);
            length = 0;
        }
    }
    lengths
}

/// Returns `true` if a sentence ends with `word`: at the end of the text, or at a mark before anything but a small
/// letter.
fn ends_sentence(word: &str, next: Option<&str>) -> bool {
    let Some(next) = next else { return true };
    let ends = word.trim_end_matches([')', '*', '_', '"', ']']).ends_with(['.', '!', '?', '…']);
    let begins = next.chars().find(|character| character.is_alphanumeric());
    ends && !begins.is_some_and(char::is_lowercase)
}

/// `text` with each piece of code as one word, which may begin a sentence.
fn with_code_as_words(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces.map(|(at, piece)| if at % 2 == 1 { "CODE" } else { piece }).collect()
}

/// `text` without the addresses of its links.
fn without_targets(text: &str) -> String {
    let mut pieces = text.split("](");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |text, piece| text + piece.split_once(')').map_or(piece, |(_, behind)| behind))
}

#[cfg(test)]
mod tests {
    use super::{check, sentences};
    use crate::ratchet;
    use crate::tidy::found;

    /// Returns a sentence of this number of words.
    fn sentence(words: usize) -> String {
        format!("W{}.\n", " w".repeat(words - 1))
    }

    #[test]
    fn a_mean_of_20_words_is_refused_and_one_below_passes() {
        let below = format!("{}{}", sentence(19), sentence(20));
        assert!(found(check, &[("docs/a.md", &below)]).is_empty());
        assert_eq!(
            found(check, &[("docs/a.md", &sentence(20))]),
            ["docs/a.md:0: `docs/a.md` has 20.0 words a sentence; at most 19.9: shorten its sentences"]
        );
    }

    #[test]
    fn only_user_pages_count_for_the_mean() {
        let long = sentence(50);
        let files = [
            ("docs/design/a.md", &*long),
            ("docs/decisions/b.md", &long),
            ("docs/SUMMARY.md", &long),
            ("c.md", &long),
        ];
        assert!(found(check, &files).is_empty());
        assert_eq!(found(check, &[("docs/chip/a.md", &long)]).len(), 1);
    }

    #[test]
    fn code_tables_headings_pictures_and_comments_do_not_count() {
        let long = "w ".repeat(50);
        for apart in [
            format!("```text\n{long}\n\n{long}\n```\n"),
            format!("# {long}\n"),
            format!("| {long} |\n"),
            format!("![{long}](a.svg)\n"),
            format!("<!-- {long}\n{long} -->\n"),
        ] {
            let text = format!("{apart}{}", sentence(19));
            assert!(found(check, &[("docs/a.md", &text)]).is_empty(), "{text}");
            assert_eq!(found(check, &[("docs/a.md", &format!("{text}{}", sentence(40)))]).len(), 1, "{text}");
        }
    }

    #[test]
    fn each_item_of_a_list_and_each_paragraph_ends_a_sentence() {
        let words = "w ".repeat(12);
        for text in [
            format!("{words}:\n\n- {words}\n- {words}\n"),
            format!("1. {words}\n2. {words}\n"),
            format!("> {words}\n\n{words}\n"),
        ] {
            assert!(found(check, &[("docs/a.md", &text)]).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_sentence_ends_at_a_mark_before_a_capital_a_figure_or_code() {
        assert_eq!(sentences("One two. Three! (Four five.) 6 is 7?"), [2, 1, 2, 3]);
        assert_eq!(sentences("It reads `a b. c` and `d`. `e` follows."), [5, 2]);
        assert_eq!(sentences("Some (one, two, ..) run vs. others at 1.5 V."), [9]);
        assert_eq!(sentences("See [the **page**](a/b.md#c.d e). And [that](x.md)."), [3, 2]);
        assert_eq!(sentences("- –"), [0; 0]);
    }

    #[test]
    fn a_tolerated_page_passes_but_may_not_get_worse_and_its_entry_follows() {
        let page = |words| found(check, &[("docs/a.md", &*sentence(words)), (ratchet::PATH, LIST)]);
        const LIST: &str = "[sentences]\n\"docs/a.md\" = 25.0\n";
        assert!(page(25).is_empty());
        assert_eq!(
            page(26),
            ["docs/a.md:0: `docs/a.md` has 26.0 words a sentence; at most 25.0: shorten its sentences"]
        );
        assert!(page(24)[0].ends_with("set it to 24.0"), "{:?}", page(24));
        assert!(page(19)[0].ends_with("remove it"), "{:?}", page(19));
    }

    #[test]
    fn a_paragraph_or_an_item_of_more_than_120_words_is_refused_with_its_line() {
        let words = |count: usize| sentence(12).repeat(count / 12);
        let page = |text: String| found(check, &[("docs/a.md", &*text)]);
        assert!(page(format!("# A\n\n{}\n{}", words(120), words(120))).is_empty());
        assert!(page(format!("- {}- {}", words(120), words(120))).is_empty());
        for (text, line) in [
            (format!("# A\n\n{}", words(132)), 3),
            (format!("{}\n- one.\n- {}", words(12), words(132)), 4),
            (format!("```text\n{}```\n{}", words(132), words(132)), 14),
        ] {
            let wanted = format!(
                "docs/a.md:{line}: a paragraph of 132 words; at most 120: make it a list, or several paragraphs"
            );
            assert_eq!(page(text), [wanted]);
        }
        let code = format!("```text\n{}```\n| {} |\n", words(132), "w ".repeat(132));
        assert!(page(code).is_empty());
        for not_for_users in ["docs/design/a.md", "docs/decisions/a.md"] {
            assert_eq!(found(check, &[(not_for_users, &*words(132))]).len(), 1);
        }
        assert!(found(check, &[("docs/SUMMARY.md", &*words(132))]).is_empty());
    }

    #[test]
    fn an_entry_finer_than_a_tenth_or_of_no_number_is_refused() {
        for number in ["25.05", "\"long\"", "-1"] {
            let list = format!("[sentences]\n\"docs/a.md\" = {number}\n");
            let found = found(check, &[("docs/a.md", ""), (ratchet::PATH, &list)]);
            assert!(found[0].ends_with("`docs/a.md` needs a number of words a sentence"), "{found:?}");
        }
    }
}
