//! A bound on the depth of a query, computed from its text.
//!
//! The parser and the evaluation of SPARQL recurse over a query, so a text of some thousand brackets or operators
//! would exhaust the stack of a place. The depth of the tree is at most the number of brackets and operators on a path
//! into the text: those of a group add up, because adjacent blocks and terms become a chain. Elements separated by
//! commas do not add up, nor do the rows of `VALUES`. Invariant: an accepted text has at most [`DEPTH_MAX`] of them on
//! each path.

use std::fmt;

/// Most open brackets.
const NESTED_MAX: usize = 256;

/// Most brackets and operators on a path into a query.
const DEPTH_MAX: usize = 1_000;

/// The reason why a text is too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooDeep {
    /// Line and column, from 1, of the first bracket or operator beyond the limit.
    line: usize,
    column: usize,
    is_nested: bool,
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, items) = match self.is_nested {
            true => (NESTED_MAX, "nested brackets"),
            false => (DEPTH_MAX, "brackets and operators in a group"),
        };
        write!(f, "line {}, column {}: more than {most} {items}", self.line, self.column)
    }
}

/// A group between brackets that is open.
#[derive(Clone, Copy, Default)]
struct BracketGroup {
    /// The depth at its start, the depth of its current element, and the greatest depth of its elements.
    start: usize,
    depth: usize,
    deepest: usize,
    /// `true` if commas separate elements: between round brackets.
    has_elements: bool,
    /// `true` between the brackets of `VALUES`.
    is_data: bool,
}

/// Checks that a query is not too deep to be parsed and evaluated.
///
/// # Errors
/// The position of the first bracket or operator beyond the limit.
pub fn check(text: &str) -> Result<(), TooDeep> {
    let mut scan =
        Scan { text: text.as_bytes(), at: 0, groups: vec![BracketGroup::default()], is_values: false };
    while let Some(byte) = scan.text.get(scan.at).copied() {
        let start = scan.at;
        let is_deeper = scan.step(byte);
        let nested = scan.groups.len() - 1;
        let is_nested = nested > NESTED_MAX;
        if is_nested || (is_deeper && scan.group().depth > DEPTH_MAX) {
            let before = &text[..start];
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
            return Err(TooDeep { line, column, is_nested });
        }
    }
    Ok(())
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    groups: Vec<BracketGroup>,
    /// `true` after the word `VALUES`, up to its brackets.
    is_values: bool,
}

impl Scan<'_> {
    /// Returns the innermost open group.
    fn group(&mut self) -> &mut BracketGroup {
        self.groups.last_mut().expect("the text itself is a group")
    }

    /// Skips one token; returns `true` if the token made the group deeper.
    fn step(&mut self, byte: u8) -> bool {
        self.at += 1;
        match byte {
            b'#' => self.skip_while(|byte| byte != b'\n' && byte != b'\r'),
            b'\'' | b'"' => self.skip_string(byte),
            b'<' => self.skip_iri(),
            b'@' => self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            b'?' | b'$' if self.next().is_some_and(is_name) => self.skip_while(is_name),
            b'(' | b'[' | b'{' => return self.open(byte),
            b')' | b']' | b'}' => self.close(),
            b',' if self.group().has_elements => {
                let group = self.group();
                group.depth = group.start;
            }
            b'^' if self.next() == Some(b'^') => self.at += 1, // the type of a literal
            b'!' if self.next() == Some(b'=') => self.at += 1, // which has two operands only
            b'|' | b'&' => {
                self.skip_while(|other| other == byte);
                return self.deepen();
            }
            b'+' | b'-' | b'*' | b'/' | b'!' | b'^' | b'?' => return self.deepen(),
            byte if is_name(byte) || byte == b':' => self.skip_word(),
            _ => {}
        }
        false
    }

    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_while(&mut self, fits: impl Fn(u8) -> bool) {
        while self.next().is_some_and(&fits) {
            self.at += 1;
        }
    }

    /// Skips a string, including one with three quotes; an unterminated one ends with its line or with the text.
    fn skip_string(&mut self, quote: u8) {
        let is_long = self.text[self.at..].starts_with(&[quote; 2]);
        if is_long {
            self.at += 2;
        }
        while let Some(byte) = self.next() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' | b'\r' if !is_long => return,
                _ if byte != quote => {}
                _ if !is_long => return,
                _ if self.text[self.at..].starts_with(&[quote; 2]) => {
                    self.at += 2;
                    return;
                }
                _ => {}
            }
        }
    }

    /// Skips an IRI; a `<` that does not begin one is an operator, which has only two operands.
    fn skip_iri(&mut self) {
        let length = self.text[self.at..].iter().take_while(|byte| is_of_iri(**byte)).count();
        if self.text.get(self.at + length) == Some(&b'>') {
            self.at += length + 1;
        }
    }

    /// Skips a keyword or a number, or a name with a prefix, which may have hyphens, dots and escapes.
    fn skip_word(&mut self) {
        let start = self.at - 1;
        let mut is_prefixed = self.text[start] == b':';
        while let Some(byte) = self.next() {
            match byte {
                b':' => is_prefixed = true,
                b'\\' if is_prefixed => self.at += 1,
                b'-' | b'.' | b'%' if is_prefixed => {}
                byte if is_name(byte) => {}
                _ => break,
            }
            self.at += 1;
        }
        let word = &self.text[start..self.at.min(self.text.len())];
        self.is_values |= word.eq_ignore_ascii_case(b"VALUES");
    }

    fn open(&mut self, byte: u8) -> bool {
        let outer = *self.group();
        let is_data = outer.is_data || (self.is_values && byte == b'{');
        self.is_values &= byte != b'{';
        let start = outer.depth + usize::from(!is_data);
        let has_elements = byte == b'(';
        self.groups.push(BracketGroup { start, depth: start, deepest: start, has_elements, is_data });
        true
    }

    fn close(&mut self) {
        if self.groups.len() == 1 {
            return; // which the parser refuses
        }
        let inner = self.groups.pop().unwrap_or_default();
        if !inner.is_data {
            let group = self.group();
            group.depth = group.depth.max(inner.deepest.max(inner.depth));
            group.deepest = group.deepest.max(group.depth);
        }
    }

    fn deepen(&mut self) -> bool {
        let group = self.group();
        if !group.is_data {
            group.depth += 1;
            group.deepest = group.deepest.max(group.depth);
        }
        true
    }
}

/// Returns `true` for bytes that occur in names of variables and keywords, including those beyond ASCII.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Returns `true` for bytes that an IRI may have between its brackets (SPARQL 1.1, `IRIREF`).
fn is_of_iri(byte: u8) -> bool {
    !(byte <= b' ' || br#"<>"{}|^`\"#.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn brackets_and_chains_are_bounded_and_lists_are_not() {
        let deep = |text: &str| check(text).map_err(|fault| fault.to_string());
        let nested = format!("ASK {}{}", "{".repeat(256), "}".repeat(256));
        assert_eq!(deep(&nested), Ok(()));
        let nested = format!("ASK\n{}{}", "{".repeat(20_000), "}".repeat(20_000));
        assert_eq!(deep(&nested).unwrap_err(), "line 2, column 257: more than 256 nested brackets");
        let blocks = |number| format!("ASK {{ {} }}", vec!["{ ?s ?p ?o }"; number].join(" UNION "));
        assert_eq!(deep(&blocks(900)), Ok(()));
        let error = deep(&blocks(3_000)).unwrap_err();
        assert!(error.ends_with(": more than 1000 brackets and operators in a group"), "{error}");
        for chain in ["FILTER(1)", "BIND(1 AS ?v)", "?s :p* ?o .", "OPTIONAL { ?s ?p ?o }"] {
            assert!(deep(&format!("ASK {{ {} }}", chain.repeat(3_000))).is_err(), "{chain}");
        }
        for operator in ["+", "-", "*", "/", "||", " && ", "+-", "*!"] {
            let operands = vec!["1"; 3_000].join(operator);
            assert!(deep(&format!("ASK {{ FILTER({operands}) }}")).is_err(), "{operator}");
        }
        assert!(deep(&format!("ASK {{ ?s {} ?o }}", vec![":p"; 3_000].join("|"))).is_err());
        assert!(deep(&format!("ASK {{}} HAVING {}", "(1)".repeat(3_000))).is_err());
        let list = vec!["\"2\"^^xsd:int"; 9_000].join(", ");
        assert_eq!(deep(&format!("ASK {{ ?s :p-q ?o FILTER(?o IN ({list}, (1 + -2), f(3))) }}")), Ok(()));
        let rows = "(-1 +2 a:b-c <x:/a/b>) (UNDEF \"((({{{\" 'it''s' _:b)".repeat(2_000);
        assert_eq!(deep(&format!("ASK {{ VALUES (?a ?b ?c ?d) {{ {rows} }} }}")), Ok(()));
        assert_eq!(deep(&format!("ASK {{ {} }}", "?s <x:a+b> ?o . ".repeat(9_000))), Ok(()));
    }

    #[test]
    fn strings_iris_names_and_comments_are_no_brackets() {
        let many = "((((".repeat(200);
        for text in [
            format!("# {many}\nASK {{}}"),
            format!("ASK {{ ?s ?p \"{many}\\\" {many}\" }}"),
            format!("ASK {{ ?s ?p '''{many}' {many}\n{many}''' }}"),
            format!("ASK {{ ?s <x:{many}> ?o }}"),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
        let less = format!("ASK {{ FILTER(?a < {many}");
        assert!(check(&less).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_checked(text in r#"([(){}\[\],'"\\<>#@?$:a-cé^|&+*/! \n-]|VALUES|''')*"#) {
            let _ = check(&text);
        }
    }
}
