//! The packages of Debian as RDF, from `apt-cache dumpavail` on this host.
//!
//! A package has a name, a version, a size, a section, a maintainer, and other packages that it depends on,
//! recommends, suggests, breaks or provides. All alternatives count; version requirements are ignored. It downloads
//! nothing. Invariant: the same lists yield the same lines of N-Triples, each complete in itself.

use isles_app::Failure;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// The prefix of the IRIs of packages and properties.
const PACKAGE: &str = "urn:debian:package:";
const PROPERTY: &str = "urn:debian:";

/// Fields whose value is a text, and the names of their properties.
const TEXTS: [(&str, &str); 4] =
    [("Version", "version"), ("Section", "section"), ("Priority", "priority"), ("Maintainer", "maintainer")];

/// Fields whose value is a list of packages.
const RELATIONS: [(&str, &str); 8] = [
    ("Depends", "depends"),
    ("Pre-Depends", "preDepends"),
    ("Recommends", "recommends"),
    ("Suggests", "suggests"),
    ("Conflicts", "conflicts"),
    ("Breaks", "breaks"),
    ("Replaces", "replaces"),
    ("Provides", "provides"),
];

/// Returns the package lists of this host as N-Triples.
///
/// # Errors
/// [`Failure::Usage`]: there is no `apt-cache`, or its lists are empty.
pub fn triples() -> Result<Vec<u8>, Failure> {
    let output =
        Command::new("apt-cache").arg("dumpavail").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let refused = |why: &str| {
        Failure::Usage(format!("--data debian: {why}; it needs a Debian system with package lists"))
    };
    let output = output.map_err(|error| refused(&format!("apt-cache: {error}")))?;
    let text = of_lists(&String::from_utf8_lossy(&output.stdout));
    if text.is_empty() {
        Err(refused("apt-cache lists no packages; run apt-get update"))
    } else {
        Ok(text.into_bytes())
    }
}

/// Returns the triples of stanzas, separated by blank lines.
fn of_lists(lists: &str) -> String {
    let mut out = String::new();
    for stanza in lists.split("\n\n") {
        let fields: Vec<(&str, &str)> = stanza.lines().filter_map(|line| line.split_once(": ")).collect();
        let value = |name: &str| fields.iter().find(|(own, _)| *own == name).map(|(_, value)| value.trim());
        let Some(name) = value("Package") else { continue };
        let mut add = |property: &str, object: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "<{PACKAGE}{name}> <{PROPERTY}{property}> {object} .");
        };
        add("name", literal(name));
        for (field, property) in TEXTS {
            value(field).into_iter().for_each(|text| add(property, literal(text)));
        }
        if let Some(size) = value("Installed-Size").filter(|size| size.parse::<u64>().is_ok()) {
            add("installedSize", format!("\"{size}\"^^<http://www.w3.org/2001/XMLSchema#integer>"));
        }
        for (field, property) in RELATIONS {
            let others = value(field).into_iter().flat_map(|list| list.split([',', '|']));
            let names = others.filter_map(|other| other.split([' ', '(', ':']).find(|part| !part.is_empty()));
            names.for_each(|other| add(property, format!("<{PACKAGE}{other}>")));
        }
    }
    out
}

fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_becomes_a_line_for_each_value() {
        let lists = "Package: g++-12\nVersion: 12.2\nInstalled-Size: 70\nMaintainer: A \"B\" <b@c.d>\n\
                     Depends: gcc-12 (= 12.2), libc6:any | libc6.1 (>= 2)\nDescription: C++\n more: text\n\n\
                     Package: a\nProvides: b (= 1)\n";
        let expected = "<urn:debian:package:g++-12> <urn:debian:name> \"g++-12\" .\n\
            <urn:debian:package:g++-12> <urn:debian:version> \"12.2\" .\n\
            <urn:debian:package:g++-12> <urn:debian:maintainer> \"A \\\"B\\\" <b@c.d>\" .\n\
            <urn:debian:package:g++-12> <urn:debian:installedSize> \"70\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
            <urn:debian:package:g++-12> <urn:debian:depends> <urn:debian:package:gcc-12> .\n\
            <urn:debian:package:g++-12> <urn:debian:depends> <urn:debian:package:libc6> .\n\
            <urn:debian:package:g++-12> <urn:debian:depends> <urn:debian:package:libc6.1> .\n\
            <urn:debian:package:a> <urn:debian:name> \"a\" .\n\
            <urn:debian:package:a> <urn:debian:provides> <urn:debian:package:b> .\n";
        assert_eq!(of_lists(lists), expected);
    }
}
