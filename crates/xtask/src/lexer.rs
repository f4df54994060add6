//! Cuts Rust source into code tokens and comments.
//!
//! The checks must not be fooled by words inside strings and comments; nothing more is wanted, so this is
//! a lexer and not a parser. It accepts any text: an unclosed string or comment simply ends with the file.
//! Grammar: The Rust Reference, chapter "Lexical structure".

/// Kind of a code token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Identifier or keyword.
    Word,
    /// One character of punctuation.
    Mark,
    /// String, byte string, C string or character.
    Text,
    /// Number.
    Number,
    /// Lifetime or loop label.
    Lifetime,
}

/// One code token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: TokenKind,
    /// The text as written; of a raw identifier the part after `r#`.
    pub text: String,
    /// Line of its first character, counted from 1.
    pub line: usize,
}

impl Token {
    /// Returns `true` if this is the word or mark `text`, not a literal that looks like it.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Mark) && self.text == text
    }
}

/// One comment; each line comment is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Text without the comment marks, trimmed.
    pub text: String,
    /// First line, counted from 1.
    pub line: usize,
}

/// The code and the comments of one file, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Everything that is compiled.
    pub code: Vec<Token>,
    /// Everything that is not.
    pub comments: Vec<Comment>,
}

/// Cuts `text`.
pub fn lex(text: &str) -> Source {
    let mut cursor = CharCursor { chars: text.chars().collect(), at: 0, line: 1, source: Source::default() };
    while let Some(first) = cursor.peek(0) {
        cursor.step(first);
    }
    cursor.source
}

struct CharCursor {
    chars: Vec<char>,
    at: usize,
    line: usize,
    source: Source,
}

impl CharCursor {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn step(&mut self, first: char) {
        match first {
            '/' if self.peek(1) == Some('/') => self.line_comment(),
            '/' if self.peek(1) == Some('*') => self.block_comment(),
            '"' => self.quoted(self.at),
            '\'' => self.quote_or_lifetime(),
            _ if first.is_whitespace() => {
                self.bump();
            }
            _ if first.is_ascii_digit() => self.number(),
            _ if word_char(first) => self.word(),
            _ => {
                let start = self.at;
                self.bump();
                self.push(TokenKind::Mark, start, self.line);
            }
        }
    }

    fn push(&mut self, kind: TokenKind, start: usize, line: usize) {
        let text = self.chars[start..self.at].iter().collect();
        self.source.code.push(Token { kind, text, line });
    }

    fn comment(&mut self, start: usize, line: usize) {
        let text: String = self.chars[start..self.at].iter().collect();
        let text = text.trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']).trim().to_string();
        self.source.comments.push(Comment { text, line });
    }

    fn line_comment(&mut self) {
        let (start, line) = (self.at, self.line);
        while self.peek(0).is_some_and(|next| next != '\n') {
            self.bump();
        }
        self.comment(start, line);
    }

    fn block_comment(&mut self) {
        let (start, line) = (self.at, self.line);
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => break,
                _ => {
                    self.bump();
                    continue;
                }
            }
            self.bump();
            self.bump();
            if depth == 0 {
                break;
            }
        }
        self.comment(start, line);
    }

    /// A string with escapes; `start` is where its prefix began, the cursor stands on the quote.
    fn quoted(&mut self, start: usize) {
        let line = self.line;
        self.bump();
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    self.bump();
                }
                '"' => break,
                _ => {}
            }
        }
        self.push(TokenKind::Text, start, line);
    }

    /// A raw string; the cursor stands on the first `#` or on the quote.
    fn raw(&mut self, start: usize) {
        let line = self.line;
        let hashes = self.chars[self.at..].iter().take_while(|next| **next == '#').count();
        self.at += hashes + 1;
        while let Some(next) = self.bump() {
            if next == '"'
                && self.chars[self.at..].iter().take(hashes).filter(|next| **next == '#').count() == hashes
            {
                self.at += hashes;
                break;
            }
        }
        self.push(TokenKind::Text, start, line);
    }

    fn quote_or_lifetime(&mut self) {
        let (start, line) = (self.at, self.line);
        let lifetime = self.peek(1).is_some_and(word_char) && self.peek(2) != Some('\'');
        self.bump();
        if lifetime {
            while self.peek(0).is_some_and(word_char) {
                self.bump();
            }
            return self.push(TokenKind::Lifetime, start, line);
        }
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    self.bump();
                }
                '\'' => break,
                _ => {}
            }
        }
        self.push(TokenKind::Text, start, line);
    }

    fn number(&mut self) {
        let (start, line) = (self.at, self.line);
        while self.peek(0).is_some_and(word_char)
            || (self.peek(0) == Some('.') && self.peek(1).is_some_and(|next| next.is_ascii_digit()))
        {
            self.bump();
        }
        self.push(TokenKind::Number, start, line);
    }

    fn word(&mut self) {
        let (start, line) = (self.at, self.line);
        while self.peek(0).is_some_and(word_char) {
            self.bump();
        }
        let word: String = self.chars[start..self.at].iter().collect();
        let hashes = self.chars[self.at..].iter().take_while(|next| **next == '#').count();
        match (word.as_str(), self.peek(0), self.peek(hashes)) {
            ("r" | "br" | "cr", Some('"' | '#'), Some('"')) => self.raw(start),
            ("b" | "c", Some('"'), _) => self.quoted(start),
            ("b", Some('\''), _) => self.quote_or_lifetime(),
            ("r", Some('#'), Some(next)) if hashes == 1 && word_char(next) => {
                self.bump();
                self.word();
            }
            _ => self.push(TokenKind::Word, start, line),
        }
    }
}

fn word_char(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        lex(text)
            .code
            .into_iter()
            .filter(|token| token.kind == TokenKind::Word)
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn words_inside_strings_are_not_code() {
        assert_eq!(
            words(r##"a "unsafe \" x" b r#"un"safe"# c b"x" d c"y" e br"\" f"##),
            ["a", "b", "c", "d", "e", "f"]
        );
    }

    #[test]
    fn words_inside_comments_are_not_code() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
    }

    #[test]
    fn a_quote_character_does_not_open_a_string() {
        assert_eq!(words(r#"a '"' b '\'' c b'"' d '\\' e"#), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_lifetime_is_neither_a_word_nor_an_open_quote() {
        assert_eq!(words("fn f<'a>(x: &'a str) where 'a: 'static"), ["fn", "f", "x", "str", "where"]);
    }

    #[test]
    fn a_raw_identifier_is_a_word_without_its_prefix() {
        assert_eq!(words("r#type r#fn"), ["type", "fn"]);
    }

    #[test]
    fn lines_are_counted_through_multi_line_strings() {
        let source = lex("\"a\nb\"\nc // d\n/* e\n */ f");
        let lines: Vec<usize> = source.code.iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 3, 5]);
        assert_eq!(source.comments[0], Comment { text: "d".to_string(), line: 3 });
    }

    #[test]
    fn unclosed_text_ends_with_the_file() {
        for text in ["\"a", "r#\"a\"", "/* a", "'", "b'", "r#"] {
            lex(text);
        }
    }

    #[test]
    fn a_range_of_numbers_is_two_numbers() {
        let numbers =
            lex("0..10 1.5 0x1f_u8").code.into_iter().filter(|token| token.kind == TokenKind::Number);
        assert_eq!(numbers.map(|token| token.text).collect::<Vec<_>>(), ["0", "10", "1.5", "0x1f_u8"]);
    }
}
