//! Unsupported graph formats, recognised so that they are refused by name.
//!
//! A file in one of them must not be reported as a faulty edge list. Only the beginning of a text is checked.
//! Invariant: no edge list, CSV, METIS or Matrix Market file is recognised as one of them.

use super::super::{GraphError, Position, error::excerpt, matrix_market};

/// Number of bytes checked at the beginning of a text.
const BEGINNING_BYTES: usize = 4096;

/// Checks that a text is not in an unsupported format, and not nearly a Matrix Market file.
pub(super) fn check(text: &[u8]) -> Result<(), GraphError> {
    let beginning = String::from_utf8_lossy(&text[..text.len().min(BEGINNING_BYTES)]).to_lowercase();
    if let Some(name) = name_of(&beginning) {
        return Err(GraphError::ForeignFormat { name });
    }
    let lines = text[..text.len().min(BEGINNING_BYTES)].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    match lines.zip(1..).find(|(line, _)| !line.is_empty()) {
        Some((line, number)) if is_nearly_matrix_market(&beginning) => Err(GraphError::Malformed {
            position: Position::Line(number),
            found: excerpt(line),
            allowed: matrix_market::HEADER,
        }),
        _ => Ok(()),
    }
}

/// Returns the name of the unsupported format of a lower-case text, if it is recognised.
fn name_of(text: &str) -> Option<&'static str> {
    let is_comment = |line: &&str| line.is_empty() || line.starts_with(['#', '%']);
    let mut lines = text.lines().map(str::trim).skip_while(is_comment);
    let first = lines.next()?;
    let words: Vec<&str> = first.split_whitespace().collect();
    let has_words = |known: &[&str]| known.iter().any(|known| words[0] == *known);
    if first.starts_with('<') {
        let known = [("graphml", "GraphML"), ("gexf", "GEXF")];
        let named = known.iter().find(|(tag, _)| text.contains(&format!("<{tag}")));
        return Some(named.map_or("XML", |(_, name)| name));
    }
    if first.starts_with('*') {
        return Some("a Pajek file");
    }
    if first.starts_with(['{', '[']) {
        return Some("JSON");
    }
    if first.starts_with(">>graph6<<") || first.starts_with(">>sparse6<<") {
        return Some("graph6 or sparse6");
    }
    if first.starts_with("leda.graph") {
        return Some("a LEDA file");
    }
    let following = || lines.clone().find(|line| !line.is_empty()).unwrap_or_default();
    if has_words(&["graph", "digraph", "strict", "graph[", "graph{", "digraph{"]) {
        let rest = format!("{first} {}", following());
        let bracket = rest.chars().find(|character| ['[', '{'].contains(character));
        return bracket.map(|bracket| if bracket == '[' { "GML" } else { "DOT" });
    }
    if has_words(&["creator", "version"]) && text.contains("graph") && text.contains('[') {
        return Some("GML");
    }
    if has_words(&["dl"]) || first.starts_with("dl ") {
        return Some("a UCINET DL file");
    }
    let is_remark = |line: &&str| *line == "c" || line.starts_with("c ");
    let problem =
        std::iter::once(first).chain(lines.clone()).find(|line| !is_remark(line) && !line.is_empty());
    let is_dimacs =
        problem.is_some_and(|line| line.starts_with("p ") && line.split_whitespace().count() == 4);
    is_dimacs.then_some("a DIMACS file")
}

/// Returns `true` if the first line of a lower-case text is nearly that of a Matrix Market file.
///
/// A correct first line is recognised earlier; this finds a missing sign, an extra blank, or a missing word.
fn is_nearly_matrix_market(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let letters: String = first.chars().filter(|character| character.is_ascii_alphanumeric()).collect();
    let words: Vec<&str> = first.split(|character: char| !character.is_alphanumeric()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_comment = first.starts_with('%');
    letters.starts_with("matrixmarket")
        || is_comment
            && has(&["coordinate", "array"])
            && has(&["matrix", "pattern", "integer", "real", "complex", "general", "symmetric"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_of_numbers_is_another_form() {
        for text in
            ["0 1\n", "# graph [\n0 1\n", "% sym unweighted\n1 2\n", "source,target\n0,1\n", "", "\n\n", "c"]
        {
            assert!(check(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
