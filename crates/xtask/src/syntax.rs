//! The little syntax that the checks need: functions, test modules, named items, comments at a site.
//!
//! It works on tokens, not on a parse tree, and therefore also inside macro bodies. It does not resolve
//! names. Lines are counted from 1 and ranges of lines include both ends.

use crate::lexer::{Comment, Source, Token, TokenKind};
use std::ops::RangeInclusive;

/// First and last line of something.
pub type Lines = RangeInclusive<usize>;

/// Returns the number of lines in a range.
pub fn length(lines: &Lines) -> usize {
    lines.end() + 1 - lines.start()
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// From the line of `fn` to the line of the closing brace.
    pub lines: Lines,
}

/// Every function that has a body, nested ones too.
pub fn functions(source: &Source) -> Vec<Function> {
    let code = &source.code;
    let starts = (0..code.len()).filter(|at| code[*at].is("fn"));
    starts
        .filter_map(|at| {
            let name = code.get(at + 1).filter(|token| token.kind == TokenKind::Word)?;
            let lines = code[at].line..=code[body_end(code, at)?].line;
            Some(Function { name: name.text.clone(), lines })
        })
        .collect()
}

/// The lines of each module that is compiled for tests only.
pub fn test_modules(source: &Source) -> Vec<Lines> {
    let code = &source.code;
    let mut modules = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let end = attribute_end(code, at).filter(|end| is_test_attribute(&code[at..*end]));
        if let Some(last) = end.and_then(|end| body_end(code, end)) {
            modules.push(code[at].line..=code[last].line);
            at = last;
        }
        at += 1;
    }
    modules
}

/// The index after the attribute that starts at `at`, if one does.
fn attribute_end(code: &[Token], at: usize) -> Option<usize> {
    if !(code[at].is("#") && code.get(at + 1)?.is("[")) {
        return None;
    }
    Some(close(code, at + 1)? + 1)
}

fn is_test_attribute(attribute: &[Token]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.is(word));
    has("cfg") && has("test") && !has("not")
}

/// The index of the brace that closes the first body at or after `at`; `None` where a `;` comes first.
fn body_end(code: &[Token], at: usize) -> Option<usize> {
    let mut next = at;
    while next < code.len() {
        match code[next].text.as_str() {
            _ if code[next].kind != TokenKind::Mark => next += 1,
            "(" | "[" => next = close(code, next)? + 1,
            "{" => return close(code, next),
            ";" => return None,
            _ => next += 1,
        }
    }
    None
}

/// The index of the bracket that closes the one at `open`.
fn close(code: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, token) in
        code.iter().enumerate().skip(open).filter(|(_, token)| token.kind == TokenKind::Mark)
    {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// A name that the source introduces.
#[derive(Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// `mod`, `fn`, `struct` and so on.
    pub keyword: &'a str,
    /// The name.
    pub name: &'a str,
    /// Line of the item.
    pub line: usize,
}

/// Every named item.
pub fn items(source: &Source) -> impl Iterator<Item = Item<'_>> {
    const KEYWORDS: &[&str] = &["mod", "fn", "struct", "enum", "union", "trait", "type", "const", "static"];
    source.code.windows(2).filter_map(|pair| {
        let [keyword, name] = pair else { return None };
        let named = KEYWORDS.iter().any(|word| keyword.is(word)) && name.kind == TokenKind::Word;
        named.then(|| Item { keyword: &keyword.text, name: &name.text, line: name.line })
    })
}

/// Every binding: the names of fields and parameters, and those that `let`, `for` and closures bind.
///
/// A name before a single `:` counts wherever it stands, also in the literal of a struct. Bindings of `match` arms are
/// left out, because tokens do not tell them from expressions.
pub fn bindings(source: &Source) -> impl Iterator<Item = Item<'_>> {
    let code = &source.code;
    (0..code.len()).flat_map(move |at| {
        let keyword = code[at].text.as_str();
        let bound = match keyword {
            "let" if code[at].is("let") => pattern_end(code, at, &["=", ";", ":"]),
            // Not the `for` of `impl Trait for Type {`.
            "for" if code[at].is("for") => {
                pattern_end(code, at, &["in", ";", "{"]).filter(|range| code[range.end].is("in"))
            }
            "|" if opens_closure(code, at) => pattern_end(code, at, &["|", ";"]),
            _ if is_before_type(code, at) => Some(at..at + 1),
            _ => None,
        };
        let words = code[bound.unwrap_or(at..at)].iter();
        let is_name = |token: &&Token| {
            let is_lower = token.text.starts_with(|first: char| first.is_lowercase() || first == '_');
            token.kind == TokenKind::Word && is_lower && !matches!(token.text.as_str(), "mut" | "ref")
        };
        words.filter(is_name).map(|token| Item { keyword: "let", name: &token.text, line: token.line })
    })
}

/// The tokens of the pattern after the one at `at`, which ends before a mark or word of `ends`; `None` if a bracket
/// around it closes before, or the file ends.
fn pattern_end(code: &[Token], at: usize, ends: &[&str]) -> Option<std::ops::Range<usize>> {
    let mut depth = 0usize;
    for next in at + 1..code.len() {
        let token = &code[next];
        if depth == 0 && ends.iter().any(|end| token.is(end)) && !is_path_colon(code, next) {
            return Some(at + 1..next);
        }
        match token.text.as_str() {
            _ if token.kind != TokenKind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Returns `true` if the token at `at` is half of a `::`.
fn is_path_colon(code: &[Token], at: usize) -> bool {
    let is_colon = |at: Option<usize>| at.and_then(|at| code.get(at)).is_some_and(|token| token.is(":"));
    is_colon(Some(at)) && (is_colon(at.checked_sub(1)) || is_colon(Some(at + 1)))
}

/// Returns `true` if the word at `at` is followed by the `:` of a type or of a field's value.
fn is_before_type(code: &[Token], at: usize) -> bool {
    let colon = code.get(at + 1).is_some_and(|token| token.is(":"));
    code[at].kind == TokenKind::Word && colon && !is_path_colon(code, at + 1)
}

/// Returns `true` if the `|` at `at` opens the parameters of a closure.
fn opens_closure(code: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &code[before]);
    code[at].is("|")
        && before.is_some_and(|token| {
            ["(", ",", "=", "{", ";", ">", "move", "return"].iter().any(|opener| token.is(opener))
        })
}

/// Every parameter of a named function, also of one without a body, whose type is a tuple or a reference to one; each
/// as the function that has it.
pub fn tuple_parameters(source: &Source) -> Vec<Item<'_>> {
    let code = &source.code;
    let starts = (0..code.len()).filter(|at| code[*at].is("fn"));
    let tuples = starts.filter_map(|at| {
        let name = code.get(at + 1).filter(|token| token.kind == TokenKind::Word)?;
        let open = generics_end(code, at + 2)?;
        let end = close(code, open).filter(|_| code[open].is("("))?;
        let parameters = split_at_commas(&code[open + 1..end]);
        let tuples = parameters.into_iter().filter(|parameter| is_tuple_parameter(parameter)).count();
        Some((0..tuples).map(move |_| Item { keyword: "fn", name: &name.text, line: name.line }))
    });
    tuples.flatten().collect()
}

/// The index after the generic parameters that begin at `at`, or `at` if none do.
fn generics_end(code: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for next in at..code.len() {
        depth = depth.checked_add_signed(angle_step(code, next))?;
        if depth == 0 {
            return Some(if code[next].is(">") { next + 1 } else { next });
        }
    }
    None
}

/// By how much the token at `at` changes the depth of angle brackets; the `>` of an arrow does not.
fn angle_step(code: &[Token], at: usize) -> isize {
    let is_arrow = || at.checked_sub(1).is_some_and(|before| code[before].is("-") || code[before].is("="));
    match &code[at] {
        token if token.is("<") => 1,
        token if token.is(">") && !is_arrow() => -1,
        _ => 0,
    }
}

/// The parts of `code` between the commas that no bracket surrounds; a comma at the end closes the last part.
fn split_at_commas(code: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0isize);
    for at in 0..code.len() {
        let token = &code[at];
        match token.text.as_str() {
            _ if token.kind != TokenKind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&code[start..at]);
                start = at + 1;
            }
            _ => depth += angle_step(code, at),
        }
    }
    if start < code.len() {
        parts.push(&code[start..]);
    }
    parts
}

/// Returns `true` if the pattern or the type of `parameter` is a tuple, or the type a reference to one.
fn is_tuple_parameter(parameter: &[Token]) -> bool {
    let Some(colon) = (0..parameter.len()).find(|at| is_type_colon(parameter, *at)) else { return false };
    // The type may be an alias.
    if parameter[0].is("(") && !parameter[1].is(")") {
        return true;
    }
    let is_reference = |token: &&Token| token.is("&") || token.is("mut") || token.kind == TokenKind::Lifetime;
    let references = parameter[colon + 1..].iter().take_while(is_reference).count();
    let of_type = &parameter[colon + 1 + references..];
    let is_in_brackets = of_type.first().is_some_and(|token| token.is("("));
    let end = if is_in_brackets { close(of_type, 0) } else { None };
    end.is_some_and(|end| {
        let inside = &of_type[1..end];
        split_at_commas(inside).len() > 1 || inside.last().is_some_and(|token| token.is(","))
    })
}

/// Returns `true` if the token at `at` is the `:` between a pattern and its type.
fn is_type_colon(parameter: &[Token], at: usize) -> bool {
    let opened = |mark: &str| parameter[..at].iter().filter(|token| token.is(mark)).count();
    let is_outside = opened("(") == opened(")") && opened("{") == opened("}") && opened("[") == opened("]");
    parameter[at].is(":") && !is_path_colon(parameter, at) && is_outside
}

/// The words of a name in any case: `SendError`, `send_error` and `SEND_ERROR` are send and error.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for next in name.chars() {
        if next == '_' || next == '-' || (next.is_uppercase() && lower_before) {
            words.push(String::new());
        }
        if next.is_alphanumeric() {
            words.last_mut().expect("one word is always open").extend(next.to_lowercase());
        }
        lower_before = next.is_lowercase() || next.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The comments that belong to the token at `at`: those of its statement before it, those directly above
/// its line, and those at the start of the block that it opens.
pub fn comments_at<'a>(source: &'a Source, text: &str, at: usize) -> Vec<&'a Comment> {
    let line = source.code[at].line;
    let boundary =
        source.code[..at].iter().rev().find(|token| [";", "{", "}"].iter().any(|mark| token.is(mark)));
    let first = boundary.map_or(0, |token| token.line + 1).min(first_line_above(source, text, line));
    let opened = source.code.get(at + 1).filter(|token| token.is("{"));
    let last = opened.and_then(|_| source.code.get(at + 2)).map_or(line, |token| token.line);
    source.comments.iter().filter(|comment| (first..=last).contains(&comment.line)).collect()
}

/// The first line of the unbroken run of comments and attributes above `line`.
fn first_line_above(source: &Source, text: &str, line: usize) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let belongs = |above: usize| {
        let trimmed = lines.get(above - 1).map_or("", |line| line.trim_start());
        trimmed.starts_with("//")
            || trimmed.starts_with("#[")
            || source.comments.iter().any(|comment| comment.line == above)
    };
    let mut first = line;
    while first > 1 && belongs(first - 1) {
        first -= 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;

    #[test]
    fn a_function_lasts_from_its_keyword_to_its_closing_brace() {
        let source = lex(
            "fn a(x: [u8; 2]) -> u8\n{\n  if x { }\n}\ntrait T { fn b(); fn c() { } }\nlet f: fn(u8) = a;",
        );
        let found: Vec<(String, usize)> =
            functions(&source).into_iter().map(|function| (function.name, length(&function.lines))).collect();
        assert_eq!(found, [("a".to_string(), 4), ("c".to_string(), 1)]);
    }

    #[test]
    fn a_brace_in_a_string_does_not_end_a_function() {
        let source = lex("fn a() {\n \"}\";\n '}';\n}");
        assert_eq!(functions(&source)[0].lines, 1..=4);
    }

    #[test]
    fn test_modules_are_found_and_their_opposites_are_not() {
        let text = "#[cfg(test)]\nmod tests {\n}\n#[cfg(not(test))]\nmod a {\n}\n\
            #[cfg(all(test, loom))]\nmod b {}\n#[cfg(test)]\nmod c;";
        assert_eq!(test_modules(&lex(text)), [1..=3, 7..=8]);
    }

    #[test]
    fn names_are_cut_into_words_in_any_case() {
        assert_eq!(words("SendError"), ["send", "error"]);
        assert_eq!(words("SEND_ERROR2"), ["send", "error2"]);
        assert_eq!(words("transport-shm"), ["transport", "shm"]);
    }
}
