//! Code size of a part of an application, read from the symbols of its program.

use isles_app::{Failure, runs};
use object::{Object, ObjectSymbol, SymbolKind};
use std::fs;

/// Functions of a program: the mangled name of each, its address and its size in bytes. Equal functions may be merged.
pub type CodeSymbols = Vec<(String, u64, u64)>;

/// Returns the functions of the program of an application.
///
/// # Errors
/// There is no such application, or its program cannot be read.
pub fn symbols(app: &str) -> Result<CodeSymbols, Failure> {
    let path = runs::program(app)?;
    let refused = |cause: &dyn std::fmt::Display| Failure::Ended(format!("{}: {cause}", path.display()));
    let program = fs::read(&path).map_err(|cause| refused(&cause))?;
    let file = object::File::parse(&*program).map_err(|cause| refused(&cause))?;
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    Ok(functions
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.address(), symbol.size())))
        .collect())
}

/// Returns the bytes of all functions of the modules or types `names`, without those that only print.
///
/// # Errors
/// There are no such functions: the program was built without symbols, or the names no longer exist.
pub fn of(code: &CodeSymbols, names: &[&str]) -> Result<u64, Failure> {
    // The two forms of a part of a mangled name: in its own path, and in the path of an implementation.
    let parts: Vec<String> =
        names.iter().flat_map(|name| [format!("{}{name}", name.len()), format!("..{name}")]).collect();
    let has = |name: &str, part: &str| {
        let is_whole = |at: usize| !name[at + part.len()..].starts_with(|c: char| c.is_ascii_alphabetic());
        name.match_indices(part).any(|(at, _)| is_whole(at))
    };
    let is_part = |name: &str| parts.iter().any(|part| has(name, part)) && !name.contains("fmt..Debug");
    let mut found: Vec<(u64, u64)> = code
        .iter()
        .filter(|(name, ..)| is_part(name))
        .map(|(_, address, bytes)| (*address, *bytes))
        .collect();
    found.sort_unstable();
    found.dedup_by_key(|(address, _)| *address);
    match found.iter().map(|(_, bytes)| bytes).sum() {
        0 => Err(Failure::Ended(format!("the program has no function of {}", names.join(", ")))),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_its_own_functions_and_those_of_its_traits_but_what_prints() {
        let mut code: CodeSymbols = [
            ("_ZN14isles_protocol3hub5rules8PoolRule3new17hE", 1),
            ("_ZN92_$LT$isles_protocol..hub..rules..PoolRule$u20$as$u20$isles_protocol..hub..rules..HubRule$GT$5pairs17hE", 2),
            ("_ZN73_$LT$isles_protocol..hub..rules..PoolRule$u20$as$u20$core..fmt..Debug$GT$3fmt17hE", 4),
            ("_ZN14isles_protocol3hub7generic3Hub7execute17hE", 8),
            ("_ZN92_$LT$isles_protocol..hub..rules..BigPoolRule$u20$as$u20$isles_protocol..hub..rules..HubRule$GT$5pairs17hE", 16),
        ]
        .map(|(name, bytes)| (name.to_owned(), 64 * bytes, bytes))
        .into();
        // An equal function at the same address.
        code.push(("_ZN14isles_protocol3hub5rules8PoolRule5equal17hE".to_owned(), 64, 1));
        assert_eq!(of(&code, &["PoolRule"]).unwrap(), 3);
        assert_eq!(of(&code, &["Hub"]).unwrap(), 8);
        assert!(of(&code, &["PortRule"]).is_err());
    }
}
